"""What is typed at a task, or answers its question: each input is an operation, given at most once, however often it is
asked for.

Pure. A repeated operation gets its receipt again; with other bytes it is refused. An input that was cut off is never
sent again, since nobody knows what the command made of the half. Source: `tasks.md` 2.8 (stdin).
"""

from __future__ import annotations

from msgspec import Struct

from actors.task.state import Refused

CREDIT_BYTES = 65_536
REMEMBERED = 256
CONFLICT = "operation {} typed something else"
OVER = "TaskTerminal: the task has ended"


class Receipt(Struct, frozen=True):
    """How many bytes were taken; `error` (a code and a text) if not all were."""

    accepted: int
    error: str | None = None


def delivery_unknown(operation: str, accepted: int) -> str:
    """The code and text for an input that was cut off."""
    return f"InputDeliveryUnknown: operationId={operation}; acceptedBytes={accepted}"


class InputLedger:
    """Which operations there were. `begin` tells what is known; None: type it, then call `end`."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[bytes, Receipt | None]] = {}
        self._pending = 0

    def begin(self, operation: str, data: bytes) -> Receipt | None:
        known = self._known.get(operation)
        if known is not None and known[0] != data:
            return Receipt(0, f"OperationConflict: {CONFLICT.format(operation)}")
        if known is not None:
            return known[1] or Receipt(0, f"OperationConflict: operation {operation} is still being typed")
        if len(data) + self._pending > CREDIT_BYTES:
            return Receipt(0, f"InputBackpressure: more than {CREDIT_BYTES} bytes wait to be read")
        if not data:
            return self._keep(operation, data, Receipt(0))
        self._pending += len(data)
        self._known[operation] = (data, None)
        return None

    def end(self, operation: str, accepted: int) -> Receipt:
        """`accepted` bytes were typed; fewer than asked for means that the terminal is gone."""
        data, _ = self._known[operation]
        self._pending -= len(data)
        error = None if accepted == len(data) else delivery_unknown(operation, accepted)
        return self._keep(operation, data, Receipt(accepted, error))

    def _keep(self, operation: str, data: bytes, receipt: Receipt) -> Receipt:
        self._known[operation] = (data, receipt)
        while len(self._known) > REMEMBERED:
            oldest = next((name for name, each in self._known.items() if each[1] is not None), None)
            if oldest is None:
                break
            del self._known[oldest]
        return receipt


class AnswerLedger:
    """Which operations have answered a question. An agent may ask again before a client repeats its answer."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], str] = {}

    def has(self, task_id: str, operation: str, text: str) -> bool:
        """Whether this answer was given. Raises `Refused` if the operation gave another one."""
        known = self._given.get((task_id, operation))
        if known is not None and known != text:
            raise Refused("OperationConflict", CONFLICT.format(operation))
        return known is not None

    def keep(self, task_id: str, operation: str, text: str) -> None:
        self._given[task_id, operation] = text
        if len(self._given) > REMEMBERED:
            del self._given[next(iter(self._given))]
