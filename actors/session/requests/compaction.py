"""Commands that shorten the context, and the one that ends that."""

from __future__ import annotations

from actors.mail import Ticket
from actors.session.compaction.parameters import Wish
from actors.session.requests.group import Answers, Group
from actors.tool.schema import shown_number
from protocol import commands as c


class CompactionRequests(Group):
    def answers(self) -> Answers:
        return {c.Compact: self._compact, c.AbortCompaction: self._abort}

    def _compact(self, ticket: Ticket, command: c.Compact) -> None:
        refusal = wrong_parameter(command)
        if refusal is None and self._setting.model is None:
            refusal = self._session.fallback[0] or self._setting.catalog.refusal(None)
        if refusal is not None:
            self._outbox.failed(ticket, refusal)
            return
        wish = Wish(command.compression_ratio, command.preserve_recent, command.query)
        self._session.compactor.request(ticket, wish)

    def _abort(self, ticket: Ticket, _: c.AbortCompaction) -> None:
        """The answer comes before that of the command which it ends."""
        self._outbox.ok(ticket)
        self._session.navigation.cancel()
        self._session.compactor.cancel()


def wrong_parameter(command: c.Compact) -> str | None:
    """What is wrong with the parameters of `command`."""
    ratio, recent = command.compression_ratio, command.preserve_recent
    if ratio is not None and not 0 < ratio < 1:
        return f'compact: "compression_ratio" must be a number above 0 and below 1, not {shown_number(ratio)}'
    if recent is not None and recent < 0:
        return f'compact: "preserve_recent" must be a whole number of 0 or more, not {recent}'
    return None
