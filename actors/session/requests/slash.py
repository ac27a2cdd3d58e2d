"""Commands about slash commands: templates, skills, and what only extensions would bring."""

from __future__ import annotations

from actors.mail import SurroundingsLoaded, Ticket
from actors.session.requests.group import Answers, Group
from protocol import commands as c
from protocol.responses import CompletionList, ShortcutList, SlashCommandList


class SlashRequests(Group):
    def answers(self) -> Answers:
        return {
            c.GetCommands: self._get_commands,
            c.GetCommandCompletions: self._get_command_completions,
            c.GetShortcuts: self._get_shortcuts,
            c.InvokeShortcut: self._invoke_shortcut,
            c.Reload: self._reload,
        }

    def loaded(self, mail: SurroundingsLoaded) -> None:
        self._session.loads.discard(mail.ticket.serial)
        if mail.surroundings is None:
            self._outbox.failed(mail.ticket, mail.error)
            return
        for warning in mail.surroundings.warnings:
            self._services.complain(warning)
        self._setting.surroundings = mail.surroundings
        self._outbox.ok(mail.ticket)

    def _get_commands(self, ticket: Ticket, _: c.GetCommands) -> None:
        self._outbox.ok(ticket, SlashCommandList(self._setting.surroundings.expander.commands()))

    def _get_command_completions(self, ticket: Ticket, _: c.GetCommandCompletions) -> None:
        """Only extensions complete arguments."""
        self._outbox.ok(ticket, CompletionList(None))

    def _get_shortcuts(self, ticket: Ticket, _: c.GetShortcuts) -> None:
        self._outbox.ok(ticket, ShortcutList([]))

    def _invoke_shortcut(self, ticket: Ticket, command: c.InvokeShortcut) -> None:
        self._outbox.failed(ticket, f"Shortcut not found: {command.key}")

    def _reload(self, ticket: Ticket, _: c.Reload) -> None:
        self._session.loads.add(ticket.serial)
        self._services.load_surroundings(ticket, self._history.cwd, self._session.me)
