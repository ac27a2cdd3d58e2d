"""What a stress run counted: answers and how long they took, refusals, and every promise that was broken.

Pure. Also the watch over the order of events. Latencies are kept in seconds and told in milliseconds.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

_SHOWN = 20  # violations in the text; all are counted, and in the JSON


class Tally:
    """`took` for each answer, `refused` for each refusal, `violated` for what must not happen."""

    def __init__(self) -> None:
        self.latencies: dict[str, list[float]] = {}
        self.refusals: Counter[str] = Counter()
        self.violations: list[str] = []
        self.missing: list[str] = []  # features that the agent does not have
        self.events = 0
        self.seconds = 0.0
        self.peak_mib: float | None = None
        self.exit_code: int | None = None
        self.left_behind: list[str] = []

    def took(self, what: str, seconds: float) -> None:
        self.latencies.setdefault(what, []).append(seconds)

    def refused(self, command: str, message: str) -> None:
        """`message` by its first words: what follows differs from case to case."""
        self.refusals[f"{command}: {message[:60]}"] += 1

    def wrongly_refused(self, command: str, message: str) -> None:
        """Refused although nothing stood in its way: a feature that is missing when the command is not even known."""
        if not message.startswith("Unknown command"):
            self.violated(f"{command} was refused: {message}")
        elif command not in self.missing:
            self.missing.append(command)

    def violated(self, what: str) -> None:
        self.violations.append(what)

    @property
    def answers(self) -> int:
        return sum(map(len, self.latencies.values()))

    def as_data(self) -> dict[str, Any]:
        return {
            "seconds": round(self.seconds, 3),
            "answers": self.answers,
            "answersPerSecond": round(self.answers / self.seconds, 1) if self.seconds else None,
            "events": self.events,
            "latencyMs": {name: percentiles(times) for name, times in sorted(self.latencies.items())},
            "refusals": dict(self.refusals.most_common()),
            "peakMiB": self.peak_mib,
            "exitCode": self.exit_code,
            "leftBehind": self.left_behind,
            "missing": self.missing,
            "violations": self.violations,
        }

    def as_json(self) -> str:
        return json.dumps(self.as_data(), indent=2) + "\n"

    def as_text(self) -> str:
        data = self.as_data()
        lines = [
            f"{data['answers']} answers in {data['seconds']:.1f} s ({data['answersPerSecond']} a second), "
            f"{data['events']} events",
            f"{'ms':24} {'count':>7} {'p50':>8} {'p95':>8} {'p99':>8} {'max':>8}",
        ]
        for name, row in data["latencyMs"].items():
            figures = " ".join(f"{row[key]:8.1f}" for key in ("p50", "p95", "p99", "max"))
            lines.append(f"{name:24} {row['count']:7} {figures}")
        lines += [f"refused {count:5} x {what}" for what, count in data["refusals"].items()]
        memory = "memory not measured" if self.peak_mib is None else f"peak memory {self.peak_mib:.0f} MiB"
        lines.append(f"{memory}, {len(self.left_behind)} processes left behind, exit code {self.exit_code}")
        lines += [f"missing: {what}" for what in self.missing]
        lines += [f"VIOLATED: {what}" for what in self.violations[:_SHOWN]]
        more = len(self.violations) - _SHOWN
        lines += [f"and {more} more"] if more > 0 else []
        lines.append("no violation" if not self.violations else f"{len(self.violations)} violations")
        return "\n".join(lines) + "\n"


def percentiles(times: list[float]) -> dict[str, float]:
    """In milliseconds. A percentile is the smallest value that so many do not exceed."""
    ordered = sorted(times)
    count = len(ordered)
    ranks = {"p50": 50, "p95": 95, "p99": 99, "max": 100}
    found = {name: round(1000 * ordered[-(-count * rank // 100) - 1], 2) for name, rank in ranks.items()}
    return {"count": count, **found}


class Watch:
    """The order of events, as the contract has it: runs, turns and messages do not overlap, and nothing of a run comes
    outside of one."""

    PAIRS = {"agent_start": "agent_end", "turn_start": "turn_end", "message_start": "message_end"}  # noqa: RUF012
    INSIDE = {"turn_start": "agent_start", "message_start": "agent_start", "message_update": "message_start"}  # noqa: RUF012

    def __init__(self) -> None:
        self._open: set[str] = set()
        self._ends = {end: start for start, end in self.PAIRS.items()}

    def broken(self, kind: str) -> str | None:
        """What is wrong with an event of this type here, `None` when nothing is."""
        problem = None
        around = self.INSIDE.get(kind)
        if around is not None and around not in self._open:
            problem = f"{kind} without {around} before it"
        if kind in self.PAIRS:
            problem = f"{kind} before the {self.PAIRS[kind]} of the one before" if kind in self._open else problem
            self._open.add(kind)
        elif kind in self._ends:
            problem = problem if self._ends[kind] in self._open else f"{kind} without {self._ends[kind]} before it"
            self._open.discard(self._ends[kind])
        elif kind == "agent_settled" and "agent_start" in self._open:
            problem = "agent_settled inside of a run"
        return problem
