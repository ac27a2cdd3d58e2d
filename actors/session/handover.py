"""The session's part in a hand-over: letting go of its run, living on quietly, coming back, and reading its file again.

Part of the session actor. Each step waits until the session is still: no run, no answer of the queue due. The last one,
`SessionGone`, also waits for what began here and is not over: shell requests, saves, what pumps read or write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.mail import (
    BecomeCurrent,
    DescribeFork,
    ForkReady,
    ForkRefused,
    NoMoreCommands,
    Reload,
    Reread,
    Retire,
    Retired,
    SessionGone,
    SessionReloaded,
    SetQueueMode,
)

if TYPE_CHECKING:
    from actors.session.actor import Session


class HandOver:
    """`leaving` tells that the session is about to let go, so that nothing new may start."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._retiring = False
        self.told_retired = False
        self._no_more_commands = self._alone = False
        self._gone = False
        self._heard = 0
        self._reload: Reload | None = None
        self._known: int | None = None
        self._reread: Reread | None = None

    @property
    def leaving(self) -> bool:
        return self._retiring or self._reload is not None

    @property
    def is_awaited(self) -> bool:
        """Whether it stands, and is not current yet: the one before has not let go."""
        return self._heard == 0 and self._session.key > 1

    def describe_fork(self, mail: DescribeFork) -> None:
        from actors.session.fork_plan import plan_fork
        from actors.session.forking import InvalidFork

        try:
            plan = plan_fork(self._session.history, mail.entry_id, self._session.services.uuid4)
        except InvalidFork as refused:
            self._session.services.desk.tell(ForkRefused(mail.ticket, str(refused)))
            return
        self._session.services.desk.tell(ForkReady(mail.ticket, plan.lines, plan.parent_session, plan.text))

    def retire(self, mail: Retire) -> None:
        self._heard += 1
        self._retiring = True
        self._alone = self._alone or mail.alone
        self.told_retired = self._gone = False
        self._let_go()

    def become_current(self, mail: BecomeCurrent) -> None:
        self._heard += 1
        if self._heard == 1 and mail.defaults is not None:
            self._session.requests.models.take_over(mail.defaults)
        self._retiring = self.told_retired = self._no_more_commands = self._gone = False
        for kind, mode in mail.modes.items():
            if self._session.modes.get(kind) != mode:
                self._session.modes[kind] = mode
                self._session.waiting.tell(SetQueueMode(None, kind, mode))
        self._session.notices.restore()
        if not self._session.busy:
            self._session.notices.say_quietly()

    def end_commands(self, mail: NoMoreCommands) -> None:
        self._no_more_commands = True

    def begin_reload(self, mail: Reload) -> None:
        self._reload = mail
        self._known = self._reread = None
        self._let_go()

    def reread(self, mail: Reread) -> None:
        self._session.loads.discard(mail.ticket.serial)
        if self._reload is not None and self._reload.ticket == mail.ticket:
            self._reread = mail

    def _let_go(self) -> None:
        session = self._session
        session.waiting.empty()
        session.tasks.close()
        session.headroom.refuse_admission("the session was left before the prompt started")
        session.abort()
        session.compactor.cancel()

    def move_on(self) -> None:
        """Takes the steps that wait for the session to be still."""
        waiting = self._session.waiting
        if self._session.busy or waiting.owes or waiting.is_held:
            return
        self._session.tasks.stop_closed()
        if self._reload is not None and self._known is None:
            self._begin_reading(self._reload)
        if self._reload is not None and self._reread is not None:
            self._finish_reload(self._reload, self._reread)
        if self._retiring and not self.told_retired:
            self._tell_retired()
        if self.told_retired and self._no_more_commands and not self._session.owes and not self._gone:
            self._gone = True
            self._session.services.desk.tell(SessionGone(self._session.key, self._heard))
            if self._alone:
                self._session.opened.journal.close()
                self._session.me.stop()

    def _tell_retired(self) -> None:
        session = self._session
        self.told_retired = True
        session.outbox.send()
        session.services.desk.tell(Retired(session.key, dict(session.modes), session.setting.defaults))

    def _begin_reading(self, mail: Reload) -> None:
        """What is appended from now on (the result of a shell request, a notice) may be missing in what is read."""
        self._known = len(self._session.history.tree)
        self._session.loads.add(mail.ticket.serial)
        self._session.services.reread(mail.ticket, self._session.opened, self._session.me)

    def _finish_reload(self, mail: Reload, read: Reread) -> None:
        self._reload = self._reread = None
        self._session.outbox.send()
        if read.opened is None:
            self._session.services.desk.tell(SessionReloaded(mail.ticket, read.error))
            return
        self._session.history.reload(read.opened, self._session.history.tree.entries[self._known :])
        self._session.requests.models.choose(first=False)
        self._session.notices.restore()
        self._session.notices.say_quietly()
        self._session.services.desk.tell(SessionReloaded(mail.ticket))
