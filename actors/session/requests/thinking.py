"""Commands for the session's thinking level, and the switches that are saved with it."""

from __future__ import annotations

from msgspec import UNSET
from msgspec.structs import replace

from actors.mail import Ticket
from actors.session.requests.group import Answers, Group
from protocol import commands as c
from protocol.events import ThinkingLevelChanged
from protocol.model import ThinkingLevel, clamp_level, supported_levels


class ThinkingRequests(Group):
    """A level is written and told only when it changes. Without a model there is only `off`."""

    def answers(self) -> Answers:
        return {
            c.SetThinkingLevel: self._set_level,
            c.CycleThinkingLevel: self._cycle_level,
            c.GetAvailableThinkingLevels: self._get_levels,
            c.SetAutoCompaction: self._set_auto_compaction,
            c.SetAutoRetry: self._set_auto_retry,
        }

    def change(self, wanted: ThinkingLevel) -> None:
        """Runs at `wanted`, or at what the model supports instead."""
        model = self._setting.model
        level = clamp_level(model, wanted) if model is not None else "off"
        if level != self._setting.level:
            self._history.append("thinking_level_change", thinkingLevel=level)
            self._setting.level = level
            self._outbox.event(ThinkingLevelChanged(level))

    def _choose(self, wanted: ThinkingLevel) -> None:
        """The user's choice holds beyond the model of the moment: a fallback in use takes it home with it."""
        self._session.cycle.level_chosen(wanted)
        self.change(wanted)

    def _levels(self) -> tuple[ThinkingLevel, ...]:
        model = self._setting.model
        return supported_levels(model) if model is not None else ("off",)

    def _set_level(self, ticket: Ticket, command: c.SetThinkingLevel) -> None:
        from protocol.responses import EffectiveLevel

        setting = self._setting
        self._choose(command.level)
        if command.persist:
            self._persist(command.level)
        model = setting.model
        target = (model.provider, model.id) if model is not None else (UNSET, UNSET)
        self._outbox.ok(ticket, EffectiveLevel(setting.level, *target))

    def _persist(self, wanted: ThinkingLevel) -> None:
        """The effective level, for all models and for this one. A model that cannot think has none to save; without a
        model there is nothing that `wanted` could be clamped to."""
        setting = self._setting
        model = setting.model
        if model is not None and not model.reasoning:
            return
        level = wanted if model is None else setting.level
        setting.defaults = replace(setting.defaults, level=level)
        self.save(("defaultThinkingLevel",), level)
        if model is not None:
            name = f"{model.provider}/{model.id}"
            setting.defaults = replace(setting.defaults, levels={**setting.defaults.levels, name: level})
            self.save(("modelThinkingLevels", name), level)

    def _cycle_level(self, ticket: Ticket, _: c.CycleThinkingLevel) -> None:
        from protocol.responses import EffectiveLevel

        levels, model = self._levels(), self._setting.model
        if model is None or not model.reasoning or not levels:
            self._outbox.ok(ticket, b"null")
            return
        place = levels.index(self._setting.level) if self._setting.level in levels else -1
        self._choose(levels[(place + 1) % len(levels)])
        self._outbox.ok(ticket, EffectiveLevel(self._setting.level))

    def _get_levels(self, ticket: Ticket, _: c.GetAvailableThinkingLevels) -> None:
        from protocol.responses import LevelList

        self._outbox.ok(ticket, LevelList(list(self._levels())))

    def _set_auto_compaction(self, ticket: Ticket, command: c.SetAutoCompaction) -> None:
        self._setting.defaults = replace(self._setting.defaults, auto_compaction=command.enabled)
        self.save(("compaction", "enabled"), command.enabled)
        self._outbox.ok(ticket)

    def _set_auto_retry(self, ticket: Ticket, command: c.SetAutoRetry) -> None:
        self._setting.defaults = replace(self._setting.defaults, auto_retry=command.enabled)
        self.save(("retry", "enabled"), command.enabled)
        self._outbox.ok(ticket)
