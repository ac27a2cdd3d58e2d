"""Reads commands from stdin and sends each where it belongs.

It owns the partial line, the ordered lane, and what is open (`open_commands`). Commands go straight into the current
session's mailbox in the order of the wire. Only behind a command that outlives its message (a replacement, say) are the
ordered ones held; interrupts and shell commands pass, and an interrupt that passes a held command which it would have
stopped turns that into a refusal.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import assert_never

from actors.base import Actor, Address
from actors.mail import (
    Answered,
    AnswerOpen,
    CloseIntake,
    Commands,
    ImagesFitted,
    InputEnded,
    IntakeMail,
    NoMoreCommands,
    Replace,
    RootMail,
    SessionCurrent,
    SessionDeskMail,
    SessionLost,
    SessionMail,
    StdinBytes,
    StdinEnded,
    Ticket,
    Write,
    WriterMail,
)
from actors.open_commands import OpenCommands, Refusal
from protocol import commands
from protocol.codec import Rejected, read_command
from protocol.commands import (
    CREDENTIAL_WRITES,
    HOLDS_LANE,
    INTERRUPTS,
    LONG_WORK,
    REPLACEMENTS,
    Command,
    FollowUp,
    Prompt,
    Steer,
    WithImages,
    command_name,
)
from protocol.lines import LineSplitter

CLOSING = "atomic is shutting down"
LOST = "the reader of commands failed"

STOPPED_BY: dict[str, frozenset[str]] = {
    "abort": frozenset({"prompt", "navigate_tree"}),
    "abort_compaction": frozenset({"compact", "navigate_tree"}),
    "clear_queue": frozenset({"steer", "follow_up"}),
    "cancel_login_provider": frozenset({"login_provider"}),
}
"""What an interrupt stops when it passes it in the held lane; a move in the tree only if it makes a summary."""

SHORT = REPLACEMENTS | CREDENTIAL_WRITES
"""Of the commands that hold the lane, those that still run after the end of stdin."""

Item = tuple[Ticket, Command | Rejected]

FitImages = Callable[[int, WithImages, Address[IntakeMail]], None]
"""Makes the images of the command with that serial smaller, and tells `ImagesFitted`."""


class Intake(Actor[IntakeMail]):
    """`desk` takes replacements; everything else goes to the current session. Without `fit_images` images pass as they
    are."""

    def __init__(
        self,
        writer: Address[WriterMail],
        desk: Address[SessionDeskMail],
        root: Address[RootMail],
        fit_images: FitImages | None = None,
    ) -> None:
        self._writer = writer
        self._desk = desk
        self._root = root
        self._fit_images = fit_images
        self._fitting: Ticket | None = None
        self._session: Address[SessionMail] | None = None
        self._splitter = LineSplitter()
        self._lines: deque[bytes] = deque()
        self._open = OpenCommands()
        self._batch: list[Item] = []
        self._lane_holder = 0
        self._held: deque[Item] = deque()
        self._begun: StdinBytes | None = None
        self._input_over = False
        self._told_end = False

    def receive(self, mail: IntakeMail) -> None:
        match mail:
            case StdinBytes(data, ack):
                self._begun = mail
                self._lines.extend(self._splitter.feed(data))
                self._read_lines()
                if ack is not None:
                    ack.settle()
            case Answered(serials):
                self._close_tickets(serials)
            case ImagesFitted(serial, fitted):
                self._images_fitted(serial, fitted)
            case SessionCurrent(session):
                self._change_session(session)
            case StdinEnded():
                self._lines.extend(self._splitter.end())
                self._read_lines()
                self._end_input()
            case CloseIntake():
                self._close()
            case SessionLost(session, error, alive):
                self._answer(self._open.lost(session, alive, error))
            case AnswerOpen(error, last):
                self._answer_all(error)
                if last:
                    self._root.tell(InputEnded(answered=True))
            case _:
                assert_never(mail)
        self._tell_end()

    def last_words(self, unread: list[IntakeMail]) -> None:
        """Answers what is open here, and what had come but was not read yet."""
        for mail in unread:
            if type(mail) is StdinBytes and mail is not self._begun:
                self._lines.extend(self._splitter.feed(mail.data))
        self._answer_open(LOST)

    # -- reading

    def _read_lines(self) -> None:
        """Nothing is read before the first session stands."""
        while self._lines and (self._session is not None or self._told_end):
            if self._told_end:
                self._refuse_line(CLOSING)
            else:
                self._read(self._lines.popleft())
        self._send_batch()

    def _read(self, line: bytes) -> None:
        command = read_command(line)
        if isinstance(command, Rejected):
            self._to_lane(self._open.begin(command.id, command.command), command, "")
            return
        name = command_name(command)
        if isinstance(command, commands.ExtensionUiResponse):
            return  # a reply is no command, and nobody has asked
        ticket = self._open.begin(bytes(command.id), name)
        if name in INTERRUPTS:
            self._stop_held(name)
            self._to_session(ticket, command)
        elif name in LONG_WORK:
            self._to_session(ticket, command)
        else:
            self._to_lane(ticket, command, name)

    def _refuse_line(self, why: str) -> None:
        command = read_command(self._lines.popleft())
        if isinstance(command, Rejected):
            self._refuse([self._open.begin(command.id, command.command)], why)
        elif not isinstance(command, commands.ExtensionUiResponse):
            self._refuse([self._open.begin(bytes(command.id), command_name(command))], why)

    # -- the lanes

    def _to_lane(self, ticket: Ticket, command: Command | Rejected, name: str) -> None:
        if self._lane_holder:
            self._held.append((ticket, command))
            return
        if name in HOLDS_LANE and not _is_short_move(command):
            if self._input_over and name not in SHORT:
                self._to_session(ticket, Rejected(ticket.id, ticket.command, CLOSING))
                return
            self._lane_holder = ticket.serial
        if name in REPLACEMENTS and not isinstance(command, Rejected):
            self._send_batch()
            self._desk.tell(Replace(ticket, command))
        elif self._fit_images is not None and isinstance(command, Prompt | Steer | FollowUp) and _is_large(command):
            self._lane_holder = ticket.serial
            self._fitting = ticket
            self._fit_images(ticket.serial, command, self.me)
        else:
            self._to_session(ticket, command)

    def _to_session(self, ticket: Ticket, command: Command | Rejected) -> None:
        self._open.send(ticket, self._session)
        self._batch.append((ticket, command))

    def _send_batch(self) -> None:
        if self._batch and self._session is not None:
            self._session.tell(Commands(tuple(self._batch)))
            self._batch.clear()

    def _stop_held(self, interrupt: str) -> None:
        stopped = STOPPED_BY.get(interrupt, frozenset())
        for place, (ticket, command) in enumerate(self._held):
            if ticket.command in stopped and not _is_short_move(command):
                why = f"{ticket.command} was stopped by {interrupt} before it started"
                self._held[place] = (ticket, Rejected(ticket.id, ticket.command, why))
        if self._fitting is not None and self._fitting.command in stopped:
            ticket = self._fitting
            why = f"{ticket.command} was stopped by {interrupt} before it started"
            self._images_fitted(ticket.serial, Rejected(ticket.id, ticket.command, why))

    def _images_fitted(self, serial: int, command: Command | Rejected) -> None:
        """Nothing is to be done for a command that was answered meanwhile."""
        ticket = self._fitting
        if ticket is not None and ticket.serial == serial:
            self._fitting = None
            self._to_session(ticket, command)
            self._release_lane()

    def _close_tickets(self, serials: tuple[int, ...]) -> None:
        self._open.close(serials)
        self._tell_refusals()
        if self._lane_holder in serials:
            self._release_lane()

    def _release_lane(self) -> None:
        self._lane_holder = 0
        while self._held and not self._lane_holder:
            ticket, command = self._held.popleft()
            name = "" if isinstance(command, Rejected) else command_name(command)
            self._to_lane(ticket, command, name)
        self._send_batch()

    def _change_session(self, session: Address[SessionMail]) -> None:
        self._send_batch()
        if self._session is not None:
            self._session.tell(NoMoreCommands())
        self._session = session
        self._read_lines()

    # -- refusing and ending

    def _refuse(self, tickets: list[Ticket], error: str) -> None:
        self._open.refuse(tickets, error)
        self._tell_refusals()

    def _tell_refusals(self) -> None:
        self._close_after(self._open.due())

    def _close_after(self, refusals: list[Refusal]) -> None:
        self._answer(refusals)
        self._open.close([ticket.serial for ticket, _ in refusals])

    def _answer(self, refusals: list[Refusal]) -> None:
        if refusals:
            self._writer.tell(Write(tuple(ticket.failed(error) for ticket, error in refusals)))

    def _answer_all(self, error: str) -> None:
        """What is open, and what waits to be read; whatever still comes is refused."""
        self._input_over = self._told_end = True
        self._lane_holder = 0
        self._answer_open(error)

    def _answer_open(self, error: str) -> None:
        self._held.clear()
        self._fitting = None
        while self._lines:
            self._refuse_line(error)
        self._close_after(self._open.all(error))

    def _end_input(self) -> None:
        """Lets a replacement, the write of a credential or work on images finish and what waits behind it run: all are
        short. Other long commands are stopped, or not begun."""
        self._input_over = True
        if self._fitting is not None:
            return
        if self._lane_holder and self._open.command(self._lane_holder) not in SHORT:
            self._close()

    def _close(self) -> None:
        self._input_over = True
        self._lane_holder = 0
        held = [ticket for ticket, _ in self._held]
        if self._fitting is not None:
            held.insert(0, self._fitting)
        self._fitting = None
        self._held.clear()
        self._refuse(held, CLOSING)

    def _tell_end(self) -> None:
        """Root hears of the end of input once the held lane has run empty, so that what was sent before is answered.
        Until then it watches the time, which the stdin pump has told it to: the lane stands still while nobody reads
        stdout."""
        if self._told_end or not self._input_over:
            return
        if not (self._lines or self._held or self._lane_holder):
            self._told_end = True
            self._root.tell(InputEnded())


def _is_short_move(command: Command | Rejected) -> bool:
    return isinstance(command, commands.NavigateTree) and not command.options.summarize


def _is_large(command: WithImages) -> bool:
    if not command.images:
        return False
    from actors.model.image_fit import is_large

    return any(map(is_large, command.images))
