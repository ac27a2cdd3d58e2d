"""How a client behaves: every default in one place, in seconds and bytes."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from conformance.client.calls import Pace

EndsOn = Literal["agent_settled", "agent_end"]


class Options(Struct, frozen=True, kw_only=True):
    """`quick_deadline` and `slow_deadline` hold for calls of that pace (`None`: no limit); what lasts as long as the
    user's own work, a shell request or a login, has none. `ends_on` is the event that ends a prompt: `agent_settled`,
    or `agent_end` for agents that do not send the former. `idle_check` is how long a prompt that is not over may be
    silent before the client asks the agent whether it still works. `eof_grace` and `term_grace` are what an agent gets
    to end by itself, and after TERM. `buffer_bytes` bounds what one reader of events may leave unread."""

    start_deadline: float = 30.0
    quick_deadline: float | None = 30.0
    slow_deadline: float | None = 600.0
    ends_on: EndsOn = "agent_settled"
    idle_check: float = 10.0
    eof_grace: float = 10.0
    term_grace: float = 2.0
    buffer_bytes: int = 64 * 1024 * 1024

    def deadline_of(self, pace: Pace) -> float | None:
        return {"quick": self.quick_deadline, "slow": self.slow_deadline, "open": None}[pace]
