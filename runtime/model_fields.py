"""The fields of a `models.json` entry: what each may be, and its name in our structs.

Promises one sentence for the first field that is wrong: the entry, the field, the value and what is allowed. A key may
stand in any wrong place, so only numbers, true and false are told as they are, and not even they where a secret belongs
(keys, headers); all else is told by its type. Source: sessions 4.2.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from protocol.model import THINKING_LEVELS, CostTier
from runtime.config_values import is_writable, kind_of, shown
from runtime.unknown_keys import told_unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

APIS = (
    "anthropic-messages",
    "openai-completions",
    "openai-responses",
    "bedrock-converse-stream",
    "google-vertex",
    "azure-openai-responses",
    "scripted",
)
RATES = {"input": "input", "output": "output", "cacheRead": "cache_read", "cacheWrite": "cache_write"}
SECRET_FIELDS = frozenset({"apiKey", "headers"})
NESTED = frozenset({"models", "modelOverrides"})  # each entry of them is read for itself
# The switches of an endpoint that a dialect reads or a client takes for a claim, each with the words that it may be;
# those without words are true or false.
COMPAT: dict[str, tuple[str | None, ...]] = {
    **dict.fromkeys(
        (
            *("supportsStore", "supportsDeveloperRole", "supportsReasoningEffort", "supportsUsageInStreaming"),
            *("supportsStrictMode", "supportsStrictTools", "supportsOpenAIGrammarTools", "supportsGrammarTools"),
            *("supportsFinishReason", "supportsLongCacheRetention", "supportsEagerToolInputStreaming"),
            *("requiresToolResultName", "requiresAssistantAfterToolResult", "requiresThinkingAsText"),
            "forceAdaptiveThinking",
        ),
        (),
    ),
    "maxTokensField": ("max_completion_tokens", "max_tokens"),
    "thinkingFormat": ("openai", "openrouter", "deepseek", "zai", "qwen", "qwen-chat-template"),
    "cacheControlFormat": ("anthropic", None),
}
_HEADER_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"


class BadField(Exception):
    """One sentence about one field of one entry."""


class NotAllowed(Exception):
    """Says what would have been allowed, and where inside the field the fault is, if not at its top."""

    def __init__(self, allowed: str, inside: str = "", value: object = None) -> None:
        super().__init__(allowed)
        self.allowed, self.inside, self.value = allowed, inside, value


class Noted(Struct, frozen=True):
    """A value that counts, and what was left out of it: sentences that go behind the field's name."""

    value: Any
    notes: tuple[str, ...]


def read_fields(
    entry: Any,
    fields: Mapping[str, tuple[str, Callable[[Any], Any]]],
    label: str,
    notes: list[str],
    required: tuple[str, ...] = (),
) -> dict[str, Any]:
    """The checked values of `entry` by attribute. `null` is absent; fields that we do not know are ignored. What is
    left out of a field that counts is a line of `notes`.

    Raises BadField.
    """
    if not isinstance(entry, dict):
        raise BadField(f"{label} is {_told(entry)}; allowed: an object")
    said: dict[str, Any] = {}
    for name, (attribute, read) in fields.items():
        value = entry.get(name)
        if value is None:
            if name in required:
                raise BadField(f"{label}: {name} is missing")
            continue
        try:
            if name not in NESTED and not is_writable(value):
                raise NotAllowed("Unicode text, not nested too deep")
            read_value = read(value)
        except NotAllowed as error:
            raise BadField(_fault(label, name, value, error)) from None
        if isinstance(read_value, Noted):
            notes += [f"{label}: {name}{note}" for note in read_value.notes]
            read_value = read_value.value
        said[attribute] = read_value
    return said


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Per key, and one level deeper where both hold an object (routing and template maps)."""
    result = dict(below)
    for name, value in above.items():
        old = result.get(name)
        result[name] = {**old, **value} if isinstance(old, dict) and isinstance(value, dict) else value
    return result


def _fault(label: str, name: str, value: object, error: NotAllowed) -> str:
    if error.inside:
        name, value = f"{name}.{error.inside}", error.value
    told = f"of type {kind_of(value)}" if name.split(".", 1)[0] in SECRET_FIELDS else _told(value)
    return f"{label}: {name} is {told}; allowed: {error.allowed}"


def _told(value: object) -> str:
    return shown(value) if isinstance(value, bool | int | float) else f"of type {kind_of(value)}"


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise NotAllowed("a non-empty string")
    return value


def _api(value: Any) -> str:
    if not isinstance(value, str) or value not in APIS:
        raise NotAllowed(", ".join(APIS))
    return value


def _url(value: Any) -> Any:
    """A path is put behind it, so a query would not stay at the end; it may hold a key, and clients see the URL."""
    allowed = "an http:// or https:// URL with a host, or scripted: and a file"
    if not isinstance(value, str):
        raise NotAllowed(allowed)
    if value.startswith("scripted:"):
        return value
    from actors.model.route import BadUrl, route_to
    from actors.model.url_login import without_login

    plain = without_login(value)
    address = plain.partition("#")[0].partition("?")[0]
    try:
        route_to(address, None, ())
    except BadUrl:
        raise NotAllowed(allowed) from None
    if address == plain:
        return value
    query = plain[len(address) :]
    return Noted(
        value.removesuffix(query),
        (": what follows the path (? or #) is ignored; a key belongs into apiKey or headers",),
    )


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise NotAllowed("true or false")
    return value


def _tokens(value: Any) -> int:
    if not _is_number(value) or value <= 0 or value != value // 1:
        raise NotAllowed("a whole number above 0")
    return int(value)


def _modalities(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or any(item not in ("text", "image") for item in value):
        raise NotAllowed('an array of "text" and "image"')
    return tuple(dict.fromkeys(value))


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise NotAllowed("an object")
    return value


def _array(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise NotAllowed("an array")
    return value


def _headers(value: Any) -> dict[str, str]:
    """What HTTP takes, as far as it can be told before variables and commands are put in. A name that is none may be a
    whole header with its secret, so it is not told."""
    for name, text in _object(value).items():
        if not re.fullmatch(_HEADER_NAME, name):
            raise NotAllowed("names of headers, without spaces and colons, with a string for each")
        if not isinstance(text, str) or re.search("[\0\r\n]", text):
            raise NotAllowed("a string on one line", name, text)
    return dict(value)


def _compat(value: Any) -> Noted:
    """Clients take the switches for claims, and dialects act on them: none but good ones count."""
    good, notes = {}, list[str]()
    for name, switch in _object(value).items():
        words = COMPAT.get(name, ())
        if name not in COMPAT:
            continue
        if switch in words if words else isinstance(switch, bool):
            good[name] = switch
        else:
            allowed = ", ".join(word or "null" for word in words) or "true or false"
            notes.append(f".{name} is {_told(switch)}; allowed: {allowed}; it is ignored")
    unknown = told_unknown("", _object(value), COMPAT)
    return Noted(good, (*notes, *filter(None, [unknown])))


def _level_map(value: Any) -> dict[str, str | None]:
    for level, word in _object(value).items():
        if level not in THINKING_LEVELS:
            raise NotAllowed(f"levels {', '.join(THINKING_LEVELS)}")
        if word is not None and not isinstance(word, str):
            raise NotAllowed("a string or null", level, word)
    return dict(value)


def _cost(value: Any) -> dict[str, Any]:
    """Attributes of ModelCost, those that are given."""
    rates = _object(value)
    cost: dict[str, Any] = {
        attribute: _price(rates[name], name) for name, attribute in RATES.items() if rates.get(name) is not None
    }
    tiers = value.get("tiers")
    if tiers is not None:
        if not isinstance(tiers, list):
            raise NotAllowed("an array", "tiers", tiers)
        cost["tiers"] = tuple(_tier(tier, position) for position, tier in enumerate(tiers))
    return cost


def _tier(value: Any, position: int) -> CostTier:
    where = f"tiers[{position}]"
    if not isinstance(value, dict):
        raise NotAllowed("an object", where, value)
    above: Any = value.get("inputTokensAbove")
    if not _is_number(above) or above < 0:
        raise NotAllowed("a number of 0 or more", f"{where}.inputTokensAbove", above)
    rates = {attribute: _price(value.get(name), f"{where}.{name}") for name, attribute in RATES.items()}
    return CostTier(input_tokens_above=int(above), **rates)


def _price(value: Any, where: str) -> float:
    if not _is_number(value) or value < 0:
        raise NotAllowed("a number of 0 or more, in dollars per million tokens", where, value)
    return float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value - value == 0


MODEL_FIELDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "id": ("id", _text),
    "name": ("name", _text),
    "api": ("api", _api),
    "baseUrl": ("base_url", _url),
    "reasoning": ("reasoning", _flag),
    "thinkingLevelMap": ("thinking_level_map", _level_map),
    "input": ("input", _modalities),
    "cost": ("cost", _cost),
    "contextWindow": ("context_window", _tokens),
    "maxTokens": ("max_tokens", _tokens),
    "samplingParams": ("sampling_params", _object),
    "headers": ("headers", _headers),
    "compat": ("compat", _compat),
}
PROVIDER_FIELDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "name": ("name", _text),
    "baseUrl": ("base_url", _url),
    "apiKey": ("api_key", _text),
    "api": ("api", _api),
    "authHeader": ("auth_header", _flag),
    "headers": ("headers", _headers),
    "compat": ("compat", _compat),
    "models": ("models", _array),
    "modelOverrides": ("model_overrides", _object),
}
