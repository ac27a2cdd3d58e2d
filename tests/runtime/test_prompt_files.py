"""`@file` arguments."""

from __future__ import annotations

from base64 import b64decode
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from actors.tool.images import MAX_BYTES
from runtime.prompt_files import PromptFileError, PromptFiles, read_prompt_files

PNG = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


def test_a_text_file_is_wrapped_in_a_tag_with_its_absolute_path(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"\xef\xbb\xbfhello")
    assert read_prompt_files(["a.md"], str(tmp_path)).text == f'<file name="{tmp_path}/a.md">\nhello\n</file>\n'


def test_files_keep_their_order_and_empty_ones_are_skipped(tmp_path: Path) -> None:
    for name, text in (("b", "2"), ("none", ""), ("a", "1")):
        (tmp_path / name).write_text(text)
    text = read_prompt_files(["b", "none", "a"], str(tmp_path)).text
    assert text.index("\n2\n") < text.index("\n1\n")  # a path may hold digits
    assert "none" not in text


def test_an_image_is_known_by_its_content_and_attached(tmp_path: Path) -> None:
    (tmp_path / "shot.txt").write_bytes(PNG)
    files = read_prompt_files(["shot.txt"], str(tmp_path))
    assert files.text == f'<file name="{tmp_path}/shot.txt"></file>\n'
    assert [(b64decode(image.data), image.mime_type) for image in files.images] == [(PNG, "image/png")]


def test_an_image_that_no_provider_takes_is_named_and_left_out(tmp_path: Path) -> None:
    (tmp_path / "big.png").write_bytes(PNG + bytes(MAX_BYTES))
    files = read_prompt_files(["big.png"], str(tmp_path), resize=False)
    assert files.images == ()
    assert str(MAX_BYTES) in files.text


def test_a_large_image_is_made_smaller_and_its_tag_says_so(tmp_path: Path) -> None:
    wide = BytesIO()
    Image.new("L", (4000, 2)).save(wide, "PNG")
    (tmp_path / "wide.png").write_bytes(wide.getvalue())
    files = read_prompt_files(["wide.png"], str(tmp_path))
    note = "Shown at 2000 x 1 pixels; the original has 4000 x 2."
    assert files.text == f'<file name="{tmp_path}/wide.png">{note}</file>\n'
    assert Image.open(BytesIO(b64decode(files.images[0].data))).size == (2000, 1)
    (kept,) = read_prompt_files(["wide.png"], str(tmp_path), resize=False).images
    assert b64decode(kept.data) == wide.getvalue()


def test_a_damaged_image_is_named_and_left_out(tmp_path: Path) -> None:
    (tmp_path / "cut.png").write_bytes(PNG[:40])
    files = read_prompt_files(["cut.png"], str(tmp_path))
    assert files.images == () and "This file was left out: the image is cut off or damaged." in files.text


def test_a_quote_in_a_path_does_not_end_the_tag(tmp_path: Path) -> None:
    (tmp_path / 'a"b').write_text("x")
    assert '/a&quot;b">' in read_prompt_files(['a"b'], str(tmp_path)).text


@pytest.mark.parametrize(("name", "told"), [("gone", "File not found: {}/gone"), (".", "Could not read file {}: ")])
def test_what_cannot_be_read_is_refused_by_its_absolute_path(tmp_path: Path, name: str, told: str) -> None:
    with pytest.raises(PromptFileError) as refused:
        read_prompt_files([name], str(tmp_path))
    assert str(refused.value).startswith(told.format(tmp_path))


def test_no_files_are_no_text() -> None:
    assert read_prompt_files([], "/") == PromptFiles()
