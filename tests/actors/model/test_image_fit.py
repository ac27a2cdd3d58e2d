"""An image that is too large is made smaller, and nothing that it may hold does harm."""

from __future__ import annotations

import base64
import random
import struct
import sys
import zlib
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from actors.model.image_check import content_fault
from actors.model.image_fit import (
    DAMAGED,
    MAX_JPEG_PIXELS,
    MAX_SIDE,
    MAX_SOURCE_BYTES,
    CannotFit,
    checked,
    fitted,
    fitted_content,
    is_large,
)
from actors.tool.images import MAX_BYTES
from protocol.messages import ImageContent

WIDE = (2400, 30)


def picture(mode: str = "RGB", size: tuple[int, int] = WIDE) -> Image.Image:
    """Dark on the left, bright on the right."""
    grey = Image.linear_gradient("L").transpose(Image.Transpose.ROTATE_90).resize(size)
    if mode == "I;16":
        return grey.convert("I").point(lambda value: value * 257 + 0).convert("I;16")
    if mode in ("RGBA", "LA"):
        other = grey.convert(mode)
        other.putalpha(grey)
        return other
    return grey.convert("RGB").convert(mode)


def saved(image: Image.Image, form: str, **how: Any) -> bytes:
    buffer = BytesIO()
    image.save(buffer, form, **how)
    return buffer.getvalue()


def opened(data: bytes) -> Image.Image:
    image = Image.open(BytesIO(data))
    image.load()
    return image


KINDS = {
    "png": saved(picture(), "PNG"),
    "grey png": saved(picture("L"), "PNG"),
    "deep grey png": saved(picture("I;16"), "PNG"),
    "black and white png": saved(picture("1"), "PNG"),
    "palette png": saved(picture("P"), "PNG"),
    "png with alpha": saved(picture("RGBA"), "PNG"),
    "grey png with alpha": saved(picture("LA"), "PNG"),
    "jpeg": saved(picture(), "JPEG"),
    "grey jpeg": saved(picture("L"), "JPEG"),
    "jpeg for print": saved(picture("CMYK"), "JPEG"),
    "progressive jpeg": saved(picture(), "JPEG", progressive=True),
    "gif": saved(picture("P"), "GIF"),
    "webp": saved(picture(), "WEBP"),
    "webp with alpha": saved(picture("RGBA"), "WEBP", lossless=True),
}


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_is_made_smaller_and_shows_the_same(name: str) -> None:
    result = fitted(KINDS[name])
    assert result is not None
    assert (result.size, result.original) == ((2000, 25), WIDE)
    assert content_fault(result.data, result.mime_type) is None
    image = opened(result.data)
    assert result.mime_type == ("image/jpeg" if "jpeg" in name else "image/png")
    assert image.size == result.size
    greys = image.convert("RGB").convert("L")
    left, right = (greys.getpixel((at, 12)) for at in (100, 1900))
    assert isinstance(left, int) and isinstance(right, int) and left < 60 and right > 190
    assert ("A" in image.mode) is ("alpha" in name)
    assert result.note == "Shown at 2000 x 25 pixels; the original has 2400 x 30."


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP"])
def test_what_is_small_enough_is_left_alone(form: str) -> None:
    assert fitted(saved(picture(size=(MAX_SIDE, 3)), form)) is None


@pytest.mark.parametrize("data", [b"", b"no image", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\xff\xd8\xff\xe0"])
def test_what_is_no_image_is_left_alone(data: bytes) -> None:
    assert fitted(data) is None


@pytest.mark.parametrize(
    ("orientation", "size", "left_is_dark"), [(3, (2000, 25), False), (6, (25, 2000), None), (8, (25, 2000), None)]
)
def test_a_picture_that_lies_on_its_side_is_put_upright(
    orientation: int, size: tuple[int, int], left_is_dark: bool | None
) -> None:
    notes = Image.Exif()
    notes[0x0112] = orientation
    result = fitted(saved(picture(), "JPEG", exif=notes))
    assert result is not None and result.size == size
    assert result.original == (WIDE if size[0] > size[1] else WIDE[::-1])
    image = opened(result.data)
    assert image.getexif().get(0x0112) is None
    first, last = image.convert("L").getpixel((0, 0)), image.convert("L").getpixel((size[0] - 1, size[1] - 1))
    assert isinstance(first, int) and isinstance(last, int)
    assert (first < last) is (orientation == 6)


def test_place_and_camera_are_gone() -> None:
    notes = Image.Exif()
    notes[0x010F] = "SECRETMAKER"
    data = saved(picture(), "JPEG", exif=notes, comment=b"SECRETMAKER")
    result = fitted(data)
    assert b"SECRETMAKER" in data and result is not None and b"SECRETMAKER" not in result.data


def test_of_a_moving_picture_the_first_frame_is_left() -> None:
    frames = [Image.new("RGB", (2100, 4), colour) for colour in ("red", "blue")]
    for form in ("GIF", "WEBP", "PNG"):
        result = fitted(saved(frames[0], form, save_all=True, append_images=frames[1:]))
        assert result is not None
        image = opened(result.data)
        red, _, blue = image.convert("RGB").getpixel((5, 1))  # type: ignore[misc]
        assert getattr(image, "n_frames", 1) == 1 and red > 200 and blue < 50


def noise(mode: str, side: int) -> Image.Image:
    rng = random.Random(1)
    return Image.frombytes(mode, (side, side), rng.randbytes(side * side * len(mode)))


@pytest.mark.parametrize(("mode", "mime"), [("RGB", "image/jpeg"), ("RGBA", "image/png")])
def test_a_picture_with_too_many_bytes_is_made_smaller_until_it_fits(mode: str, mime: str) -> None:
    data = saved(noise(mode, 1250), "PNG", compress_level=0)
    assert len(data) > MAX_BYTES
    result = fitted(data)
    assert result is not None and result.mime_type == mime and len(result.data) <= MAX_BYTES
    assert content_fault(result.data, result.mime_type) is None


# ---- what does harm -----------------------------------------------------------------------------------------------


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def bomb(width: int, height: int) -> bytes:
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


@pytest.mark.parametrize("size", [(30_000, 30_000), (2**31 - 1, 2**31 - 1), (40_000_001, 1)])
def test_more_pixels_than_memory_should_hold_are_refused_before_they_are_read(size: tuple[int, int]) -> None:
    with pytest.raises(CannotFit, match=f"the image is {size[0]} x {size[1]} pixels, and at most 40000000 in all"):
        fitted(bomb(*size))


def test_a_large_photo_is_decoded_at_a_fraction_of_its_size() -> None:
    result = fitted(saved(Image.new("RGB", (9000, 9000)), "JPEG"))
    assert result is not None and result.size == (2000, 2000)
    assert MAX_JPEG_PIXELS > 9000 * 9000


def test_more_bytes_than_are_worth_reading_are_refused() -> None:
    with pytest.raises(CannotFit, match=f"and at most {MAX_SOURCE_BYTES} are made smaller"):
        fitted(KINDS["png"] + bytes(MAX_SOURCE_BYTES))


@pytest.mark.parametrize("name", ["png", "jpeg", "gif", "webp"])
def test_a_damaged_picture_is_named_so(name: str) -> None:
    for data in (KINDS[name][: len(KINDS[name]) // 2], bomb(2001, 2001)):
        with pytest.raises(CannotFit) as refused:
            checked(data, "image/png" if data[:1] == b"\x89" else f"image/{name}", resize=True)
        assert str(refused.value) == DAMAGED


def test_damaged_notes_of_a_camera_neither_hide_the_picture_nor_reach_stderr(recwarn: Any) -> None:
    data = saved(picture(), "JPEG", exif=b"Exif\0\0MM\0*\0\0\0\x08\xff\xff\x01\x12nonsense")
    result = fitted(data)
    assert result is not None and result.size == (2000, 25)
    assert recwarn.list == []


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["png", "jpeg", "gif", "webp", "palette png"]),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=6),
)
def test_whatever_the_bytes_are_there_is_a_good_image_or_one_clear_refusal(
    name: str, changes: list[tuple[float, int]]
) -> None:
    data = bytearray(KINDS[name])
    for place, value in changes:
        data[min(int(place * len(data)), len(data) - 1)] = value
    try:
        result = fitted(bytes(data))
    except CannotFit as refused:
        assert str(refused).startswith("the image ")
        return
    assert result is None or content_fault(result.data, result.mime_type) is None


# ---- images of files and of commands --------------------------------------------------------------------------------


def test_without_resizing_the_limits_of_models_hold() -> None:
    assert checked(KINDS["png"], "image/png", resize=False) is None
    with pytest.raises(CannotFit, match="the image is 8001 x 1 pixels, and models take 1 to 8000"):
        checked(saved(picture(size=(8001, 1)), "PNG"), "image/png", resize=False)


def test_without_pillow_what_models_take_is_sent_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    huge = saved(picture(size=(8001, 1)), "PNG")
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert fitted(KINDS["png"]) is None
    with pytest.raises(CannotFit, match="Pillow, which would make it smaller, is not installed"):
        fitted(huge)


def content(data: bytes, mime: str = "image/png") -> ImageContent:
    return ImageContent(base64.b64encode(data).decode(), mime)


def test_the_beginning_of_an_image_tells_whether_it_is_large() -> None:
    assert [is_large(content(data)) for data in KINDS.values()] == [True] * len(KINDS)
    assert not is_large(content(saved(picture(size=(2000, 30)), "PNG")))
    assert is_large(content(saved(noise("RGB", 1250), "PNG", compress_level=0)))
    late = saved(picture(size=(10, 10)), "JPEG", exif=b"Exif\0\0" + bytes(60_000))
    assert is_large(content(late)), "its size stands behind what is looked at, so somebody has to look"
    assert [is_large(ImageContent(data, "image/png")) for data in ("", "!!", "AAAA", "a b")] == [False] * 4


def test_an_image_of_a_command_is_replaced_only_if_it_must_be() -> None:
    small, odd = content(saved(picture(size=(20, 3)), "PNG")), content(b"whatever it is")
    assert fitted_content(small) is small and fitted_content(odd) is odd
    declared = content(KINDS["png"], "image/svg+xml")
    assert fitted_content(declared) is declared
    smaller = fitted_content(content(KINDS["jpeg"], "image/png"))
    assert smaller.mime_type == "image/jpeg" and opened(base64.b64decode(smaller.data)).size == (2000, 25)
