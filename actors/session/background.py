"""What a session does by itself while it is idle: it has the line written that says what it is about.

Part of the session actor. Nothing waits for it: whatever else the session is asked to do ends it, and nobody hears of a
line that did not come about.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.session.journal import JournalError

if TYPE_CHECKING:
    from actors.session.actor import Session
    from actors.session.side_call import SideCall, SideOutcome


class Background:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._call: SideCall | None = None

    def begin(self) -> None:
        """The session has become idle."""
        from actors.session.session_summary import due_summary

        session, setting = self._session, self._session.setting
        wanted = (
            setting.surroundings.session_summary and not session.leaving and session.history.header.internal is not True
        )
        if not wanted or setting.model is None or setting.catalog.refusal(setting.model) is not None:
            return
        due = due_summary(session.history.tree, setting.model)
        if due is not None:
            self._call = session.side_calls.start(due.request, lambda outcome: self._ended(due.through_id, outcome))

    def cancel(self) -> None:
        if self._call is not None:
            self._call.cancel()

    def _ended(self, through_id: str, outcome: SideOutcome) -> None:
        from actors.session.session_summary import one_line

        self._call = None
        line = one_line(outcome.text)
        if outcome.reply.stop_reason in ("error", "aborted") or not line:
            return
        fields = {"summary": line, "summarizedThroughId": through_id, "usage": outcome.reply.usage}
        try:
            self._session.history.append("session_summary", **fields)
        except JournalError as error:
            self._session.services.complain(str(error))
