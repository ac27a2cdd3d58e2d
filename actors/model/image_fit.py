"""Makes images smaller that models would refuse or shrink: to 2000 pixels a side, and to the bytes that models take.

Blocking (a photo of 12 megapixels takes 0.2 s), for pumps and for the start. A picture keeps its proportions, stands
upright, and loses everything but its pixels; of a moving one the first frame is left. JPEG stays JPEG, all else becomes
PNG while that is small enough. Memory is bounded before anything is decompressed. Pillow (25 ms, 22 MB on disk) is
loaded for the first image that is too large. Source: `sessions.md` 6.2 (`images.autoResize`) and 8.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import BytesIO
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from actors.model.image_check import MAX_PIXELS, MIME_TYPES, content_fault, pixel_size
from actors.tool.images import MAX_BYTES, mime_type
from protocol.messages import ImageContent

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_SIDE = 2000
MAX_SOURCE_BYTES = 64 << 20
# Of a decoded picture; 160 MB at four bytes each. A JPEG is decoded at a fraction of its size.
MAX_SOURCE_PIXELS = 40_000_000
MAX_JPEG_PIXELS = 120_000_000
DAMAGED = "the image is cut off or damaged"
_HEAD_CHARACTERS = 64 * 1024  # of base64; where the size stands in all but a few photos
_FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/gif": "GIF", "image/webp": "WEBP"}
_JPEG: dict[str, Any] = {"format": "JPEG", "quality": 85}
_PNG: dict[str, Any] = {"format": "PNG"}


class CannotFit(Exception):
    """The image cannot be made small enough; `str()` of it may follow the image's name."""


class Fitted(Struct, frozen=True):
    """An image as it is sent. `original` is the size before, `size` the one now, width first; both upright."""

    data: bytes
    mime_type: str
    original: tuple[int, int]
    size: tuple[int, int]

    @property
    def note(self) -> str:
        """For the model, which may be asked for places in the picture."""
        (width, height), (old_width, old_height) = self.size, self.original
        return f"Shown at {width} x {height} pixels; the original has {old_width} x {old_height}."


def checked(data: bytes, declared: str, *, resize: bool) -> Fitted | None:
    """The image of a file as a model takes it: made smaller if `resize` allows that and it must be; None if it may be
    sent as it is. Raises CannotFit for one that no model takes."""
    fault = content_fault(data, declared, any_size=resize)
    if fault is not None:
        raise CannotFit(fault)
    return fitted(data) if resize else None


def fitted(data: bytes) -> Fitted | None:
    """`data` made smaller; None if it is small enough, or none of the kinds that we know. Raises CannotFit."""
    size, kind = pixel_size(data), mime_type(data)
    if size is None or kind is None or (max(size) <= MAX_SIDE and len(data) <= MAX_BYTES):
        return None
    _require_bounded(data, kind, size)
    try:
        pillow = _pillow()
    except ImportError:
        _require_acceptable(data, size)
        return None
    try:
        with pillow.open(BytesIO(data), formats=(_FORMATS[kind],)) as image:
            _require_bounded(data, kind, image.size)
            return _smaller(image, kind)
    except CannotFit:
        raise
    except Exception:  # Pillow raises a dozen kinds for what it cannot read
        raise CannotFit(DAMAGED) from None


def is_large(image: ImageContent) -> bool:
    """Whether the image of a command may have to be made smaller. Cheap: looks at its beginning only."""
    if len(image.data) * 3 // 4 > MAX_BYTES:
        return True
    head = _decoded(image.data[:_HEAD_CHARACTERS])
    size = pixel_size(head)
    if size is None:
        return mime_type(head) is not None and len(image.data) > _HEAD_CHARACTERS
    return max(size) > MAX_SIDE


def fitted_content(image: ImageContent) -> ImageContent:
    """The image of a command, made smaller if it must be. Raises CannotFit. What is no base64, or no image that we
    know, is left to those who check it."""
    from base64 import b64encode

    smaller = fitted(_decoded(image.data)) if image.mime_type in MIME_TYPES else None
    return image if smaller is None else ImageContent(b64encode(smaller.data).decode("ascii"), smaller.mime_type)


def _pillow() -> Any:
    """Its warnings, of damaged notes for one, would stand on stderr; its own limit comes after ours."""
    from warnings import filterwarnings

    from PIL import Image

    filterwarnings("ignore", module="PIL")
    Image.MAX_IMAGE_PIXELS = MAX_JPEG_PIXELS
    return Image


def _decoded(data: str) -> bytes:
    from binascii import a2b_base64

    try:
        return a2b_base64(data, strict_mode=True)
    except ValueError:
        return b""


def _require_bounded(data: bytes, kind: str, size: tuple[int, int]) -> None:
    if len(data) > MAX_SOURCE_BYTES:
        raise CannotFit(f"the image has {len(data)} bytes, and at most {MAX_SOURCE_BYTES} are made smaller")
    most = MAX_JPEG_PIXELS if kind == "image/jpeg" else MAX_SOURCE_PIXELS
    if not 0 < size[0] * size[1] <= most:
        raise CannotFit(f"the image is {size[0]} x {size[1]} pixels, and at most {most} in all are made smaller")


def _require_acceptable(data: bytes, size: tuple[int, int]) -> None:
    """Without Pillow what models take is sent as it is."""
    if len(data) > MAX_BYTES or max(size) > MAX_PIXELS:
        told = f"the image is {size[0]} x {size[1]} pixels and {len(data)} bytes"
        raise CannotFit(f"{told}, too much for models, and Pillow, which would make it smaller, is not installed")


def _smaller(image: Image, kind: str) -> Fitted:
    from PIL.Image import Resampling

    full, turned = image.size, _is_turned(image)
    original = (full[1], full[0]) if turned else full
    picture = _plain(_upright(image, kind))
    side = MAX_SIDE
    while side:
        picture.thumbnail((side, side), Resampling.LANCZOS, reducing_gap=2.0)
        for data, mime in _encodings(picture, kind):
            if len(data) <= MAX_BYTES:
                return Fitted(data, mime, original, picture.size)
        side = max(picture.size) * 3 // 4
    raise CannotFit(f"the image has more than {MAX_BYTES} bytes at any size")


_ORIENTATION = 0x0112


def _is_turned(image: Image) -> bool:
    """Whether its width is its height once it stands upright."""
    return _orientation(image) in (5, 6, 7, 8)


def _orientation(image: Image) -> int:
    try:
        return int(image.getexif().get(_ORIENTATION, 1))
    except Exception:  # its notes are damaged, which is no reason not to show it
        return 1


def _upright(image: Image, kind: str) -> Image:
    from PIL.Image import Transpose

    orientation = _orientation(image)
    if kind == "image/jpeg":
        # Decodes at 1/2, 1/4 or 1/8: of a photo of 100 megapixels 6.
        image.draft(None, (MAX_SIDE, MAX_SIDE))
    image.load()
    turns: dict[int, Transpose] = {
        2: Transpose.FLIP_LEFT_RIGHT,
        3: Transpose.ROTATE_180,
        4: Transpose.FLIP_TOP_BOTTOM,
        5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270,
        7: Transpose.TRANSVERSE,
        8: Transpose.ROTATE_90,
    }
    turn = turns.get(orientation)
    return image if turn is None else image.transpose(turn)


def _plain(image: Image) -> Image:
    """Eight bits a channel, in a mode that is resized well and that both encoders know; nothing but pixels."""
    mode = "RGBA" if image.has_transparency_data else "L" if image.mode in ("L", "1") else "RGB"
    if image.mode.startswith("I"):  # 16 bits of grey, which `convert` alone would clip
        image, mode = image.convert("F").point(lambda value: value * (1 / 257) + 0), "L"
    plain = image if image.mode == mode else image.convert(mode)
    plain.info.clear()
    return plain


def _encodings(picture: Image, kind: str) -> Iterator[tuple[bytes, str]]:
    """The best first."""
    if kind != "image/jpeg":
        yield _encoded(picture.save, _PNG), "image/png"
    if picture.mode != "RGBA":
        yield _encoded(picture.save, _JPEG), "image/jpeg"


def _encoded(save: Callable[..., None], how: dict[str, Any]) -> bytes:
    buffer = BytesIO()
    save(buffer, **how)
    return buffer.getvalue()
