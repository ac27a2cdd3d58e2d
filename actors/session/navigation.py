"""A move in the session's tree, and the summary of the branch that it leaves.

Part of the session actor. The leaf moves when all is known that goes with it: until the summary is there nothing has
changed, so one that fails or is cancelled leaves the session where it was. Intake holds ordered commands back until the
move has been answered. What a shell command of the client gave meanwhile is recorded on the branch that is
left, where it was run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct

from actors.mail import Ticket
from actors.session.journal import JournalError
from actors.session.tree import Entry
from protocol.commands import NavigateOptions, NavigateTree
from protocol.events import SummarizationRetryAttemptStart
from protocol.messages import Usage

if TYPE_CHECKING:
    from actors.session.actor import Session
    from actors.session.side_call import SideCall, SideOutcome
    from actors.session.tree_move import Destination
    from protocol.entries import BranchSummaryDetails

BUSY_TREE = "Wait for the current response to finish before navigating the session tree."
NO_MODEL = "No model available for summarization"
NO_SUMMARY = "The model answered without a summary of the branch"
_ATTEMPT = SummarizationRetryAttemptStart("branchSummary")


class _Move(Struct, frozen=True):
    """A command under way: where it goes, and from where."""

    ticket: Ticket
    options: NavigateOptions
    target_id: str
    to: Destination
    left: list[Entry]


class _Summary(Struct, frozen=True):
    """What goes into the entry."""

    text: str
    files: BranchSummaryDetails
    usage: Usage


class Navigation:
    """`summarizing` tells that a branch summary is being made."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._history = session.history
        self._outbox = session.outbox
        self._call: SideCall | None = None

    @property
    def summarizing(self) -> bool:
        return self._call is not None

    def begin(self, ticket: Ticket, command: NavigateTree) -> None:
        from actors.session.tree_move import destination, left_behind

        tree, options = self._history.tree, command.options
        target = tree.get(command.target_id)
        if self._session.busy:
            self._outbox.failed(ticket, BUSY_TREE)
        elif target is None:
            self._outbox.failed(ticket, f"Entry {command.target_id} not found")
        elif command.target_id == tree.leaf_id:
            self._stay(ticket, command)
        else:
            self._session.background.cancel()
            left = left_behind(tree, command.target_id) if options.summarize else []
            self._start(_Move(ticket, options, command.target_id, destination(tree, target), left))

    def cancel(self) -> bool:
        """Ends a summary, and with it its command; whether there was one."""
        call = self._call
        if call is not None:
            call.cancel()
        return call is not None

    def _stay(self, ticket: Ticket, command: NavigateTree) -> None:
        """The target is the leaf: there is nothing to leave, and only a label to set."""
        from protocol.responses import Navigated

        try:
            self._label(command.target_id, command.options)
        except JournalError as error:
            self._session.services.complain(str(error))
            self._outbox.failed(ticket, str(error))
            return
        self._outbox.ok(ticket, Navigated(False))

    def _start(self, move: _Move) -> None:
        from actors.session.branch_summary import summary_request

        setting = self._session.setting
        if not move.options.summarize:
            self._finish(move, None)
            return
        refusal = NO_MODEL if setting.model is None else setting.catalog.refusal(setting.model)
        if refusal is not None or setting.model is None:
            self._outbox.failed(move.ticket, refusal or NO_MODEL)
            return
        reserve = setting.surroundings.branch_summary_reserve_tokens
        request = summary_request(move.left, move.options, setting.model, setting.level, reserve)
        if request is None:
            self._finish(move, None)
        else:
            self._call = self._session.side_calls.start(request, lambda outcome: self._ended(move, outcome), _ATTEMPT)

    def _ended(self, move: _Move, outcome: SideOutcome) -> None:
        from actors.session.branch_summary import stored_summary, touched_files
        from protocol.responses import Navigated

        self._call = None
        if outcome.aborted:
            self._outbox.ok(move.ticket, Navigated(True, aborted=True))
        elif outcome.error is not None:
            self._outbox.failed(move.ticket, outcome.error)
        elif not outcome.text.strip():
            self._outbox.failed(move.ticket, NO_SUMMARY)
        else:
            files = touched_files(move.left)
            self._finish(move, _Summary(stored_summary(outcome.text, files), files, outcome.reply.usage))

    def _finish(self, move: _Move, summary: _Summary | None) -> None:
        from protocol.responses import Navigated

        try:
            self._record(move, summary)
        except JournalError as error:
            self._session.services.complain(str(error))
            self._outbox.failed(move.ticket, str(error))
            return
        self._history.rebuild()
        text = move.to.editor_text
        self._outbox.ok(move.ticket, Navigated(False, UNSET if text is None else text))

    def _record(self, move: _Move, summary: _Summary | None) -> None:
        """Moves the leaf and appends there. Raises `JournalError`; then the leaf is where it was."""
        tree = self._history.tree
        before, leaf = tree.leaf_id, move.to.leaf_id
        if leaf is None:
            tree.reset()
        else:
            tree.branch(leaf)
        labelled = move.target_id
        try:
            if summary is not None:
                labelled = self._history.append("branch_summary", **_fields(leaf, summary))
            self._label(labelled, move.options)
        except JournalError:
            tree.leaf_id = before
            raise

    def _label(self, target_id: str, options: NavigateOptions) -> None:
        if options.label:
            self._history.append("label", targetId=target_id, label=options.label)


def _fields(leaf: str | None, summary: _Summary) -> dict[str, Any]:
    return {
        "fromId": "root" if leaf is None else leaf,
        "summary": summary.text,
        "details": summary.files,
        "usage": summary.usage,
    }
