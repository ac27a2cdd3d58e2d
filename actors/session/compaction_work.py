"""The parts of a compaction that take time: what a pump does for the session, so that its mailbox stays free.

A job is a function without side effects on the session: it gets frozen values and gives one. What it raises becomes the
error of that compaction. Preparing and rebuilding 2,000 messages of 1 MB take some 60 ms of CPU (docs/performance.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET, Struct

from actors.base import Address, StartPump
from actors.mail import CompactionWorked, SessionMail
from actors.session.compaction.boundary import Boundary, extension_boundary, planned_boundary
from actors.session.compaction.ladder import Plan
from actors.session.compaction.outcome import Outcome, Ranked, Refused, outcome_of
from actors.session.compaction.preparation import Preparation
from actors.session.compaction.region import Region
from actors.session.compaction_files import Category, CompactionFiles
from protocol.messages import AssistantMessage, TextContent
from protocol.model import Model


class CompactionWorker:
    """Runs jobs, each in a pump of its own; the session is told `CompactionWorked`. `give_back` follows: it returns the
    memory that the job and the request before it no longer use."""

    def __init__(self, start_pump: StartPump, give_back: Callable[[], None]) -> None:
        self._start_pump = start_pump
        self._give_back = give_back

    def start(self, job: int, task: Callable[[], Any], session: Address[SessionMail]) -> None:
        def work() -> None:
            session.tell(worked(job, task))
            self._give_back()

        self._start_pump("compaction", work)


def worked(job: int, task: Callable[[], Any]) -> CompactionWorked:
    """Does the task. Its errors are told by kind alone: their texts may hold what the session holds."""
    try:
        return CompactionWorked(job, task())
    except Exception as error:
        return CompactionWorked(job, None, f"the compaction failed: {type(error).__name__}")


class Judged(Struct, frozen=True):
    """What a planner's reply amounts to, and the file that tells more of it."""

    outcome: Outcome
    path: str | None


class Place(Struct, frozen=True):
    """Where files are left: `session_path` None: nowhere, since the session has no file."""

    files: CompactionFiles
    session_path: str | None


def judge(reply: AssistantMessage, view: Region, model: Model, retried: bool, place: Place) -> Judged:
    outcome = outcome_of(reply, view, model.context_window)
    if place.session_path is None:
        return Judged(outcome, None)
    category, facts = _facts(reply, model, outcome, retried)
    return Judged(outcome, place.files.keep_answer(place.session_path, category, facts))


def finish(prepared: Preparation, plan: Plan, context_window: int, label: str, place: Place) -> tuple[Boundary, str]:
    """The boundary, and a line for stderr if the copy from before could not be made."""
    path, complaint = _back_up(label, place)
    return planned_boundary(prepared, plan, context_window, path), complaint


def override(prepared: Preparation, text: str, label: str, place: Place) -> tuple[Boundary, str]:
    path, complaint = _back_up(label, place)
    return extension_boundary(prepared, text, path), complaint


def _back_up(label: str, place: Place) -> tuple[str | None, str]:
    """The session's file keeps all that is compacted, so a copy that fails does not stop the compaction."""
    if place.session_path is None:
        return None, ""
    try:
        return place.files.back_up(place.session_path, label), ""
    except OSError as error:
        return None, f"no backup was made before the compaction: {place.session_path}: {error.strerror or error}"


def _facts(reply: AssistantMessage, model: Model, outcome: Outcome, retried: bool) -> tuple[Category, dict[str, Any]]:
    facts: dict[str, Any] = {
        "response": "".join(block.text for block in reply.content if isinstance(block, TextContent)),
        "stopReason": reply.stop_reason,
        "usage": reply.usage,
        "model": {
            "provider": model.provider,
            "id": model.id,
            "api": model.api,
            "contextWindow": model.context_window,
            "maxTokens": model.max_tokens,
        },
    }
    if reply.error_message is not UNSET and reply.error_message:
        facts["providerError"] = reply.error_message
    if isinstance(outcome, Refused) and outcome.limit is not None and retried:
        facts["rateLimitExhausted"] = True
    if not isinstance(outcome, Ranked):
        return "diagnostic", facts
    if outcome.recovered:
        facts["recoveredRangeCount"] = len(outcome.deletions)
    return ("recovery" if outcome.recovered else "success"), facts
