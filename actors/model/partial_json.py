"""Reading JSON that a model or a gateway wrote: broken, unfinished, or with characters that JSON forbids.

Tool arguments never fail here: what cannot be read is `{}` or the part that could. Events of a provider's stream may
be mended but must be whole. Nothing that is returned is nested deeper than `MAX_DEPTH` or holds a NaN or an infinity,
so that it can be encoded again wherever it is put.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import msgspec

from actors.model.prompt import mend_text

# msgspec gives up near depth 750 to 1000, counted from the outermost record that holds the arguments.
MAX_DEPTH = 200

_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|\\|[\x00-\x1f]')


def parse_arguments(text: str) -> dict[str, Any]:
    """The arguments object in `text`: strict, then repaired, then as far as it goes, then both; else `{}`."""
    if not text.strip():
        return {}
    for read in _READERS:
        try:
            value = read(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and not is_too_deep(value):
            return value
    return {}


def decode_event(data: bytes) -> Any:
    """The JSON value in one stream event. Repairs raw control characters, wrong escapes and bytes that are no
    UTF-8. Raises ValueError when it still is no JSON."""
    try:
        return msgspec.json.decode(data)
    except (ValueError, RecursionError):
        pass
    text = data.decode("utf-8", "replace")
    try:
        try:
            return _strict(text)
        except ValueError:
            return _strict(repaired(text))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def repaired(text: str) -> str:
    """`text` with control characters inside strings escaped and backslashes that start no escape doubled."""
    return _STRING.sub(lambda match: _ESCAPE.sub(_mended_escape, match[0]), text)


def is_too_deep(value: Any, limit: int = MAX_DEPTH) -> bool:
    """Whether `value` nests lists and objects more than `limit` deep. Walks level by level, without recursion."""
    level = _containers([value])
    for _ in range(limit + 1):
        if not level:
            return False
        level = [item for node in level for item in _containers(node.values() if isinstance(node, dict) else node)]
    return True


def _containers(items: Iterable[Any]) -> list[Any]:
    return [item for item in items if isinstance(item, dict | list)]


def _mended_escape(match: re.Match[str]) -> str:
    found = match[0]
    if found == "\\":
        return "\\\\"
    return found if found[0] == "\\" else f"\\u{ord(found):04x}"


def _strict(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        # msgspec refuses lone surrogates, which a tool has to see in order to refuse them by name.
        import json

        return json.loads(text, parse_constant=_refuse, parse_float=_finite)


def _prefix(text: str) -> Any:
    import jiter

    return jiter.from_json(
        mend_text(text).encode(), allow_inf_nan=False, partial_mode="trailing-strings", cache_mode="none"
    )


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        _refuse(digits)
    return number


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")


_READERS: tuple[Callable[[str], Any], ...] = (
    _strict,
    lambda text: _strict(repaired(text)),
    _prefix,
    lambda text: _prefix(repaired(text)),
)
