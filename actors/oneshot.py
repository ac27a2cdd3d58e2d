"""Sends the prompts of the command line to the session, in the place where Intake reads commands.

It owns which prompts still wait. The first is what stdin held, then the text of the `@` files, then the first message,
with nothing in between. Each further one is sent when the last has settled, with all retries and whatever followed by
itself. After the last one it ends the process. Source: rpc 6, sessions 8.2.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, assert_never

from actors.base import Actor, Address
from actors.mail import (
    Answered,
    AnswerOpen,
    CloseIntake,
    Commands,
    ExtensionFailed,
    ImagesFitted,
    InputEnded,
    OneShotMail,
    PromptEnded,
    RootMail,
    SessionCurrent,
    SessionLost,
    SessionMail,
    StdinBytes,
    StdinEnded,
    Ticket,
)
from actors.print_outcome import Outcome
from protocol.commands import Prompt

if TYPE_CHECKING:
    from protocol.messages import ImageContent

NO_PROMPT = "No prompt: give it as an argument, as @file or on stdin"
EXTENSION_ERROR = "Extension error ({}): {}"
SESSION_FAILED = "the session failed; what it has of the answer is in its file"


class Prompts(NamedTuple):
    """What the command line says. `before` goes in front of the first of `messages`. `earlier` is what an opened
    session ended with: without any prompt, that is the answer. `tells_errors` is off where events tell them."""

    messages: tuple[str, ...] = ()
    before: str = ""
    images: tuple[ImageContent, ...] = ()
    earlier: Outcome | None = None
    tells_errors: bool = True


class OneShot(Actor[OneShotMail]):
    """`complain` takes one line for stderr."""

    def __init__(self, prompts: Prompts, root: Address[RootMail], complain: Callable[[str], None]) -> None:
        self._prompts = prompts
        self._root = root
        self._complain = complain
        self._session: Address[SessionMail] | None = None
        self._stdin: list[bytes] | None = []
        self._waiting: deque[Prompt] = deque()
        self._sent = 0
        self._over = False

    def receive(self, mail: OneShotMail) -> None:
        match mail:
            case PromptEnded():
                self._prompt_ended(mail)
            case ExtensionFailed(path, error):
                if self._prompts.tells_errors:
                    self._complain(EXTENSION_ERROR.format(path, error))
            case SessionCurrent(session):
                self._session_stands(session)
            case StdinBytes(data, ack):
                if self._stdin is not None:
                    self._stdin.append(data)
                if ack is not None:
                    ack.settle()
            case StdinEnded():
                self._begin()
            case SessionLost():
                self._finish(1, SESSION_FAILED)
            case CloseIntake():
                self._finish(0)  # whoever closes us has the exit code
            case AnswerOpen(last=last):
                self._over = True
                if last:
                    self._root.tell(InputEnded(answered=True, exit_code=1))
            case Answered() | ImagesFitted():
                pass
            case _:
                assert_never(mail)

    def _begin(self) -> None:
        stdin, self._stdin = b"".join(self._stdin or ()).decode("utf-8-sig", "replace").strip(), None
        first, *rest = self._prompts.messages or ("",)
        begin = Prompt(message=stdin + self._prompts.before + first, images=self._prompts.images)
        further = (Prompt(message=text) for text in rest)
        self._waiting.extend(each for each in (begin, *further) if each.message.strip() or each.images)
        self._go_on()

    def _session_stands(self, session: Address[SessionMail]) -> None:
        if self._session is not None:  # it died, and another one has its file
            self._finish(1, SESSION_FAILED)
            return
        self._session = session
        self._go_on()

    def _go_on(self) -> None:
        if self._session is None or self._stdin is not None or self._over:
            return
        if not self._waiting and self._sent == 0:
            self._finish_without_prompt()
            return
        self._sent += 1
        self._session.tell(Commands(((Ticket(self._sent, b"", "prompt"), self._waiting.popleft()),)))

    def _prompt_ended(self, mail: PromptEnded) -> None:
        if mail.refused:
            self._finish(1, mail.error)
        elif self._waiting:
            self._go_on()
        else:
            self._finish(0 if mail.whole else 1, mail.error if self._prompts.tells_errors else None)

    def _finish_without_prompt(self) -> None:
        earlier = self._prompts.earlier
        if earlier is None:
            self._finish(1, NO_PROMPT)
        else:
            self._finish(0 if earlier.whole else 1, None if earlier.whole else earlier.error)

    def _finish(self, exit_code: int, error: str | None = None) -> None:
        if self._over:
            return
        self._over = True
        if error:
            self._complain(error)
        self._root.tell(InputEnded(exit_code=exit_code))
