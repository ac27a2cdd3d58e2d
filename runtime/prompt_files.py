"""`@file` arguments: text files become part of the first prompt, images are attached to it.

What a file is its content decides, not its name. A pipe counts as one: shells make them of `<(command)`. Source:
sessions 8.2.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from actors.tool.images import HEAD_BYTES, mime_type
from protocol.messages import ImageContent
from runtime.regular_file import read_regular

if TYPE_CHECKING:
    from collections.abc import Iterable

LEFT_OUT = "This file was left out: {}."


class PromptFileError(ValueError):
    """A file that cannot be part of a prompt; the text is for the user."""


class PromptFiles(NamedTuple):
    """`text` is put in front of the first message."""

    text: str = ""
    images: tuple[ImageContent, ...] = ()


def read_prompt_files(names: Iterable[str], cwd: str, *, resize: bool = True) -> PromptFiles:
    """`names` are those of the arguments, without `@`. With `resize` large images are made smaller, and their tags say
    so. Raises PromptFileError."""
    text, images = "", []
    for name in names:
        path = os.path.normpath(os.path.join(cwd, os.path.expanduser(name)))
        data = _read(path)
        kind = mime_type(data[:HEAD_BYTES])
        if kind is None:
            text += _tag(path, f"\n{data.decode('utf-8-sig', 'replace')}\n") if data else ""
        else:
            note, image = _image(data, kind, resize=resize)
            text += _tag(path, note)
            images += [image] if image is not None else []
    return PromptFiles(text, tuple(images))


def _read(path: str) -> bytes:
    try:
        return read_regular(path, pipes=True)
    except FileNotFoundError:
        raise PromptFileError(f"File not found: {path}") from None
    except (OSError, ValueError) as error:
        raise PromptFileError(f"Could not read file {path}: {getattr(error, 'strerror', None) or error}") from None


def _tag(path: str, content: str) -> str:
    name = path.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return f'<file name="{name}">{content}</file>\n'


def _image(data: bytes, kind: str, *, resize: bool) -> tuple[str, ImageContent | None]:
    from base64 import b64encode

    from actors.model.image_fit import CannotFit, checked

    try:
        smaller = checked(data, kind, resize=resize)
    except CannotFit as fault:
        return LEFT_OUT.format(fault), None
    if smaller is None:
        return "", ImageContent(b64encode(data).decode("ascii"), kind)
    return smaller.note, ImageContent(b64encode(smaller.data).decode("ascii"), smaller.mime_type)
