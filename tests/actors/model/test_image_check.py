"""An image that providers would refuse is refused where it comes in."""

from __future__ import annotations

import base64
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.model.image_check import MIME_TYPES, content_fault, image_fault
from actors.tool.images import MAX_BYTES


def png(width: int, height: int, payload: int = 12) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + bytes(4)

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"tEXt", bytes(payload)) + chunk(b"IDAT", b"x") + _IEND


_IEND = bytes(4) + b"IEND" + bytes(4)


def jpeg(width: int, height: int) -> bytes:
    preview = b"\xff\xd8 a preview \xff\xd9"
    exif = b"\xff\xe1" + struct.pack(">H", len(preview) + 2) + preview
    frame = b"\xff\xff\xc2" + struct.pack(">HBHHB", 11, 8, height, width, 1) + bytes((1, 0x11, 0))
    return b"\xff\xd8" + exif + frame + b"\xff\xda" + struct.pack(">H", 8) + bytes(6) + b"scan\xff\0data" + b"\xff\xd9"


def gif(width: int, height: int) -> bytes:
    size = struct.pack("<HH", width, height)
    colours = bytes(6)
    comment = b"\x21\xfe\x05hello\0"
    image = b"\x2c" + bytes(4) + size + b"\x80" + colours + b"\x02" + b"\x02\x4c\x01\0"
    return b"GIF89a" + size + b"\x80\0\0" + colours + comment + image + b";"


def webp(kind: bytes, payload: bytes) -> bytes:
    chunk = kind + struct.pack("<I", len(payload)) + payload
    return b"RIFF" + struct.pack("<I", len(chunk) + 4) + b"WEBP" + chunk


def lossy(width: int, height: int) -> bytes:
    return webp(b"VP8 ", b"\x30\x01\0\x9d\x01\x2a" + struct.pack("<HH", width, height) + b"rest")


def lossless(width: int, height: int) -> bytes:
    return webp(b"VP8L", b"\x2f" + struct.pack("<I", width - 1 | (height - 1) << 14) + b"rest")


def extended(width: int, height: int) -> bytes:
    return webp(b"VP8X", bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little"))


KINDS = [
    (png, "image/png"),
    (jpeg, "image/jpeg"),
    (gif, "image/gif"),
    (lossy, "image/webp"),
    (lossless, "image/webp"),
    (extended, "image/webp"),
]
EVERY = pytest.mark.parametrize(("make", "mime"), KINDS, ids=[make.__name__ for make, _ in KINDS])


def told(data: bytes) -> str:
    return base64.b64encode(data).decode()


@EVERY
def test_whole_images_of_all_kinds_are_taken_up_to_the_largest_size(make: object, mime: str) -> None:
    assert callable(make)
    for size in ((1, 1), (8000, 3), (3, 8000)):
        assert image_fault(told(make(*size)), mime) is content_fault(make(*size), mime) is None


@EVERY
def test_an_image_with_a_side_that_is_too_long_is_refused_with_its_size(make: object, mime: str) -> None:
    assert callable(make)
    fault = content_fault(make(8001, 20), mime)
    assert fault == "the image is 8001 x 20 pixels, and models take 1 to 8000 in either direction"


@EVERY
def test_an_image_of_another_type_than_it_says_is_refused(make: object, mime: str) -> None:
    assert callable(make)
    for other in MIME_TYPES:
        fault = content_fault(make(2, 2), other)
        assert fault == (None if other == mime else f"the image is of type {mime}, not {other}")


@EVERY
def test_an_image_that_is_cut_anywhere_is_refused(make: object, mime: str) -> None:
    assert callable(make)
    whole = make(2, 2)
    last = len(whole) - (mime == "image/gif")  # which is whole without its end mark
    for size in range(last):
        assert content_fault(whole[:size], mime) is not None, size


def test_bytes_behind_the_end_do_no_harm() -> None:
    for make, mime in KINDS:
        assert content_fault(make(2, 2) + b"\0 more", mime) is None


def test_no_pixel_is_no_image() -> None:
    assert "the image is 0 x 5 pixels" in str(content_fault(png(0, 5), "image/png"))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("", "data must not be empty"),
        ("data:image/png;base64,iVBORw0KGgo=", "data must be the base64 alone, not a data: URL"),
        (base64.encodebytes(png(2, 2)).decode(), "data must be base64 without line breaks or spaces"),
        ("aGk", "data must be base64: its length or padding is wrong (3 characters)"),
        ("aGk=aGk=", "data must be base64: its length or padding is wrong (8 characters)"),
        ("aGk_", "data must be base64: character 4 is '_'"),
        ("a\ud83d==", "data must be base64: character 2 is '\\ud83d'"),
    ],
)
def test_data_that_is_no_base64_of_an_image_is_refused_by_name(data: str, text: str) -> None:
    assert (image_fault(data, "image/png") or "").startswith(text)


def test_what_the_bytes_of_a_command_show_is_left_to_the_model_and_those_of_a_file_are_looked_at() -> None:
    assert image_fault("aGVsbG8=", "image/png") is None
    assert "no image of the types image/png" in (content_fault(b"hello", "image/png") or "")


@pytest.mark.parametrize("mime", ["", "text/plain", "image/svg+xml", "image/jpg", "IMAGE/PNG", "x" * 200])
def test_only_the_types_that_providers_take_are_named_as_allowed(mime: str) -> None:
    fault = image_fault(told(png(2, 2)), mime)
    assert fault is not None and fault.startswith(
        "mimeType must be one of image/png, image/jpeg, image/gif, image/webp"
    )
    assert len(fault) < 200


def test_a_file_that_is_too_large_is_refused_with_the_limit() -> None:
    room = MAX_BYTES - len(png(2, 2, 0))
    assert image_fault(told(png(2, 2, room)), "image/png") is None
    for more in (1, 100_000):
        assert str(MAX_BYTES) in str(image_fault(told(png(2, 2, room + more)), "image/png"))


@settings(max_examples=200)
@given(st.sampled_from(KINDS), st.data())
def test_damage_is_told_and_never_raised(kind: object, data: st.DataObject) -> None:
    assert isinstance(kind, tuple)
    make, mime = kind
    broken = bytearray(make(2, 2))
    for _ in range(data.draw(st.integers(1, 4))):
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    fault = content_fault(bytes(broken), mime)
    assert fault is None or fault


@given(st.text(), st.text())
def test_any_text_gets_an_answer(data: str, mime: str) -> None:
    """One that can be written to the wire, or none for what could be sent: base64 of something."""
    for declared in (mime, "image/png"):
        fault = image_fault(data, declared)
        assert fault.encode() if fault is not None else base64.b64decode(data, validate=True)
