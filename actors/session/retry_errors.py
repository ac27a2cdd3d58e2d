"""What kind of failure an error text tells of.

Pure. Owns the wording of providers, gateways and networks, and which of two kinds weighs more. Promises a verdict for
every text, in time linear to its length. Source: `sessions.md` 3.4. Where that retries a spent quota, the issue wins:
it never is. Where it takes a 5xx for a bad request by its words, the contract wins: 5xx is transient.
"""

from __future__ import annotations

import re
from typing import Literal

Kind = Literal[
    "cancelled",
    "task",
    "refusal",
    "auth",
    "quota",
    "request",
    "transport",
    "model",
    "rate_limit",
    "unavailable",
    "network",
    "unknown",
]

_SHOWN_CHARS = 16_384
_DECIDING: tuple[Kind, ...] = ("cancelled", "task", "refusal")
_BY_WEIGHT: tuple[Kind, ...] = (
    "auth",
    "quota",
    "request",
    "transport",
    "model",
    "rate_limit",
    "unavailable",
    "network",
    "unknown",
)
_BY_STATUS: dict[int, Kind] = {
    400: "request",
    401: "auth",
    403: "auth",
    404: "model",
    408: "network",
    413: "request",
    422: "request",
    429: "rate_limit",
}
# Patterns are strings: they are compiled when the first reply fails, not at start. Texts are in lower case by then.
_URL = r"https?://[^\s\"'<>\\)]+"
_STATUS = (
    r"^\s*([45]\d\d)(?=[\s:]|$)"
    r"|(?:\bhttp(?:/[\d.]+)? |\bstatus(?: ?code)?[\"':= ]{1,4}|\"code\": ?)([45]\d\d)\b"
    r"|\(([45]\d\d)\)"
)
_DNS = r"getaddrinfo|enotfound|eai_again|\bdns\b"
_CANCELLED = r"(?<![a-z])(?:cancell?ed|cancellation|aborted|aborterror|interrupted)(?![a-z])"
_TASK = (
    r"\bcommand (?:failed|not found|exited)|\bexit(?:ed)? (?:with )?(?:code|status)\b|\btests? failed\b"
    r"|\bshell (?:command|error|exited)|\bno such file\b|\bfile not found\b|\benoent\b"
)
_WORDING: tuple[tuple[Kind, str], ...] = (
    (
        "refusal",
        r"\brefusal\b|\brefused to (?:answer|assist|complete|comply|continue|generate|respond)|\bsafety\b"
        r"|content.?filter|filtered due to|content.?policy|usage polic|polic(?:y|ies) violation"
        r"|violat\w* [^\"\n]{0,60}polic|content.?management|sensitive content|stopped with: sensitive|\bmoderation\b",
    ),
    (
        "transport",
        r"^\W*(?:connection error|fetch failed)\W*$|zlib|decompress|incorrect header check|library error"
        r"|stream deadline exceeded",
    ),
    (
        "request",
        r"context.?(?:length|window|size)|maximum (?:context|prompt|input)|max[_ ](?:\w+[_ ])?tokens"
        # not `took too long`: that is a gateway's time-out
        r"|too[_ ]large|(?:is|was|are|prompt|input|string)[_ ]too[_ ]long"
        r"|(?:unknown|unsupported|unrecognized|invalid|unexpected)[_ ](?:parameter|argument|field|value|request)"
        r"|request.?incompatible|bad request|unprocessable|does not support|not supported",
    ),
    (
        "quota",
        r"quota|billing|\bcredits?\b|insufficient (?:funds|balance)|available balance|usage.?limit|out of budget"
        r"|payment required",
    ),
    ("rate_limit", r"rate.?limit|too many requests|\b429\b|throttl|resource.?exhausted"),
    (
        "auth",
        r"unauthori[sz]ed|authenticat|forbidden|permission.?(?:denied|error)|access denied|credentials?"
        r"|(?:no|invalid|incorrect|missing|expired) (?:x-)?api.?key|api.?key[^\"\n]{0,30}(?:invalid|missing|expired)"
        r"|api.?key not valid|token[^\"\n]{0,30}(?:expired|invalidated|revoked)|token_invalid",
    ),
    (
        "model",
        r"\bmodel\b[^\"\n]{0,120}(?:unavailable|not found|not available|unknown|disabled|does not exist)"
        r"|(?:unknown|unavailable|disabled|no such) model|model_not_found",
    ),
    (
        "network",
        r"network|econn[a-z]+|etimedout|epipe|ehostunreach|enetunreach|getaddrinfo|enotfound|eai_again|\bdns\b|socket"
        r"|time[d -]{0,2}out|deadline.?exceeded|connection (?:error|refused|reset|lost|closed)|other side closed"
        r"|hang up|upstream connect|reset before headers|fetch failed|http2|unexpected.eof",
    ),
    (
        "unavailable",
        r"overload|at capacity|unavailable|server.?error|internal.?error|bad gateway|provider.?returned.?error"
        r"|terminated|request buffer limit|ended (?:without|before)|\b(?:500|502|503|504|524|529)\b"
        r"|temporar|try again|retry.?(?:delay|after|your request)|please retry|websocket",
    ),
)


def kind_of_error(text: str) -> Kind:
    """The kind of the failure that `text` tells of; `unknown` when it says nothing known."""
    shown = _shown(text)
    status = _status(shown)
    spoken = _spoken(shown, status)
    return spoken if spoken in _DECIDING else _heavier(spoken, _kind_of_status(status))


def refuses_request(text: str) -> bool:
    """Whether `text` carries the HTTP status of a request that would fail again as it is: 400, 401, 403, 413, 422."""
    return _kind_of_status(_status(_shown(text))) in ("auth", "request")


def _shown(text: str) -> str:
    """Links are taken out: a rate limit's text links to a billing page."""
    return re.sub(_URL, " ", text[:_SHOWN_CHARS].lower())


def _status(shown: str) -> int | None:
    found = re.search(_STATUS, shown)
    return int(found[found.lastindex or 0]) if found else None


def _kind_of_status(status: int | None) -> Kind:
    if status is None:
        return "unknown"
    return "unavailable" if status >= 500 else _BY_STATUS.get(status, "unknown")


def _spoken(shown: str, status: int | None) -> Kind:
    """The first kind, in order, whose words are in the text."""
    if re.search(_CANCELLED, shown):
        return "network" if re.search(_DNS, shown) else "cancelled"
    # A provider's HTTP answer is no output of a command, whatever it quotes.
    if status is None and re.search(_TASK, shown):
        return "task"
    return next((kind for kind, pattern in _WORDING if re.search(pattern, shown)), "unknown")


def _heavier(spoken: Kind, status: Kind) -> Kind:
    if status == "unavailable" and spoken in ("request", "model"):
        return status  # whatever a failing server says of the request
    return min(spoken, status, key=_BY_WEIGHT.index)
