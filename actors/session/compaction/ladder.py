"""Who plans a compaction, one after the other, and what is left when nobody can.

First the session's own model; when its window is too small for the region, the same model again with less of it. Then
each fallback model once, borrowed for this alone. A run that must not fail then drops the whole region. `Ladder`
decides and is told what came of it; somebody else makes the requests. Pure. Source: `sessions.md` 2.8.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, Struct

from actors.session.compaction.outcome import Outcome, Overflowed, Ranked
from actors.session.compaction.ranges import Range, fitted, merge
from actors.session.compaction.region import Region
from actors.session.fallback import Place, next_fallback
from protocol.compaction import PlannerModel
from protocol.model import Model

TOO_SMALL = "Nothing to compact (session too small)"
NOTHING_LEFT = "Context compaction found no compactable transcript entries; nothing more was safely deletable"
NO_CREDENTIAL = "Compaction provider authentication is unavailable"


class Ask(Struct, frozen=True):
    """Ask `planner` about `view`; the reply's outcome goes to `Ladder.answered`."""

    planner: Place
    view: Region


class Plan(Struct, frozen=True):
    """Take these lines out. `fresh`: nobody ranked them, everything goes. `planner` names a borrowed model."""

    deletions: tuple[Range, ...]
    fresh: bool = False
    planner: PlannerModel | None = None


class NoPlan(Struct, frozen=True):
    """There is none; `error` is for the user."""

    error: str


Step = Ask | Plan | NoPlan


class Ladder:
    """`home` is the session's model and level; `refusal` tells why that cannot be asked, None if it can. `entries` is
    the setting `fallbackModels`, `models` are those with credentials. `must_succeed`: a failure would end the work."""

    def __init__(
        self,
        region: Region,
        home: Place,
        refusal: str | None,
        entries: Sequence[str],
        models: Sequence[Model],
        *,
        must_succeed: bool,
    ) -> None:
        self._region = region
        self._home = home
        self._entries = entries
        self._models = models
        self._must_succeed = must_succeed
        self._error = refusal
        self._is_refused = refusal is not None
        self._tried = {home.key}
        self._planner = home
        self._withheld = 0

    def begin(self) -> Step:
        if not self._region.deletable:
            return NoPlan(NOTHING_LEFT if self._must_succeed else TOO_SMALL)
        if self._region.is_small:
            return self._fresh() if self._must_succeed else NoPlan(TOO_SMALL)
        return self._next_planner() if self._is_refused else Ask(self._home, self._region)

    def answered(self, outcome: Outcome, diagnostic: str | None = None) -> Step:
        """`diagnostic` is the path of the file that tells more of a failure."""
        if isinstance(outcome, Ranked):
            return self._plan(outcome)
        self._error = outcome.error + (f" (diagnostic: {diagnostic})" if diagnostic else "")
        if isinstance(outcome, Overflowed) and self._planner == self._home and (view := self._smaller()) is not None:
            return Ask(self._planner, view)
        return self._next_planner()

    def _smaller(self) -> Region | None:
        """The region with the older half of what was shown withheld; None if one line was shown."""
        rest = len(self._region) - self._withheld
        if rest <= 1:
            return None
        self._withheld += max(1, rest // 2)
        return self._region.without_head(self._withheld)

    def _next_planner(self) -> Step:
        self._withheld = 0
        place = next_fallback(self._entries, self._models, self._home, None, tried=self._tried, condemned=())
        if place is None:
            return self._fresh() if self._must_succeed else NoPlan(self._error or NO_CREDENTIAL)
        self._tried.add(place.key)
        self._planner = place
        return Ask(place, self._region)

    def _plan(self, ranked: Ranked) -> Plan:
        """The head that was withheld goes as a whole, but for what is protected in it."""
        shifted = [(start + self._withheld, end + self._withheld) for start, end in ranked.deletions]
        head = fitted([(1, self._withheld)], len(self._region), self._region.protected) if self._withheld else []
        return Plan(tuple(merge([*head, *shifted])), planner=self._borrowed())

    def _borrowed(self) -> PlannerModel | None:
        if self._planner == self._home:
            return None
        model, level = self._planner.model, self._planner.level
        return PlannerModel(model.provider, model.id, level if level != "off" else UNSET)

    def _fresh(self) -> Plan:
        whole = [(1, len(self._region))]
        return Plan(tuple(fitted(whole, len(self._region), self._region.protected)), fresh=True)
