"""Steps that wait for something: a record, a request of the model, an exit, a file. Unmet when it does not come.

Each verb is a function of the player and the step.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from conformance import ending
from conformance.asked import asked
from conformance.burst import Burst, read_elements
from conformance.driver import Record
from conformance.fault import Fault, Unmet, compared, missing_record
from conformance.json_values import shorten
from conformance.names import fill
from conformance.player import Player
from conformance.shapes import match
from conformance.transcript import Step


def expect(player: Player, step: Step) -> None:
    since = player.since(step)
    index, bound = player.talk.claim(step.value, player.names, since, player.deadline(step), step.line)
    player.names |= bound
    if "as" in step.options:
        player.labels[step.options["as"]] = index
    _check_order(player, step, index)


def _check_order(player: Player, step: Step, index: int) -> None:
    for key, sign in (("after", 1), ("before", -1)):
        labels = step.options.get(key, [])
        for label in labels if isinstance(labels, list) else [labels]:
            other = player.labels.get(label)
            if other is not None and (index - other) * sign < 0:
                what = f"{shorten(step.value, 120)} came on the wrong side of {label}"
                raise Unmet(Fault(what, step.line, f"{key} {label}", f"record {index}, {label} is {other}"))


def sequence(player: Player, step: Step) -> None:
    ignore = [element.shape for element in read_elements(step.options.get("ignore", []))]
    tight = step.options.get("tight", False)
    burst = Burst(read_elements(step.value), ignore, tight, player.names)
    talk, since = player.talk, player.since(step)
    next_ = first = talk.floor(since)

    def look(current: list[Record]) -> bool | None:
        nonlocal next_
        while burst.awaited is not None and burst.wrong is None and next_ < talk.count(current):
            burst.feed(next_, talk.at(next_, current))
            next_ += 1
        return True if burst.awaited is None or burst.wrong else None

    talk.until(look, player.deadline(step))
    if burst.wrong:
        what = f"another record in the sequence, after {len(burst.found)} of it"
        raise Unmet(Fault(what, step.line, shorten(burst.awaited, 200), burst.wrong))
    if burst.awaited is not None:
        at = burst.found[-1][0] + 1 if burst.found else first
        raise Unmet(
            missing_record(burst.awaited, talk.records[at:], burst.names, step.line, talk.why(player.deadline(step)))
        )
    player.names |= burst.bound
    talk.take([index for index, _ in burst.found])
    player.labels |= {label: index for index, label in burst.found if label}
    if "as" in step.options:
        player.labels[step.options["as"]] = burst.found[-1][0]


def reached(player: Player, step: Step) -> None:
    try:
        player.gates[step.value].reached.wait(player.deadline(step))
    except AssertionError as problem:
        raise Unmet(Fault(f"the model was not asked as far as {step.value}", step.line, came=str(problem))) from None


def request(player: Player, step: Step) -> None:
    number = step.value if step.value > 0 else 1
    try:
        requests = player.server.wait_for_requests(number, player.deadline(step))
    except AssertionError as problem:
        raise Unmet(Fault(f"request {step.value} did not reach the model", step.line, came=str(problem))) from None
    request = requests[step.value - 1 if step.value > 0 else step.value]
    player.compare(f"request {step.value}", step, asked(request))


def await_exit(player: Player, step: Step) -> None:
    try:
        code = player.talk.agent.wait_exit(player.deadline(step))
    except AssertionError as problem:
        why = str(problem).partition("\n")[0]
        raise Unmet(Fault("the process did not end", step.line, shorten(step.value), why)) from None
    difference = match(step.value, code, player.names).difference
    if difference:
        raise Unmet(compared("another exit code", step.line, difference))


def wait_stderr(player: Player, step: Step) -> None:
    wanted = fill(step.value, player.names)
    try:
        player.talk.agent.wait_stderr(wanted, deadline=player.deadline(step))
    except AssertionError:
        said = shorten(player.talk.agent.stderr[-300:], 300)
        raise Unmet(Fault("stderr never held the text", step.line, shorten(wanted), said)) from None


def file(player: Player, step: Step) -> None:
    _eventually(player, step, lambda: ending.file_problem(step, player.stage, player.names))


def entries(player: Player, step: Step) -> None:
    _eventually(player, step, lambda: ending.entries_problem(step, player.stage, player.names))


def _eventually(player: Player, step: Step, look: Callable[[], Fault | None]) -> None:
    """Look now; with `eventually` again and again until it holds or the deadline is over."""
    end = time.monotonic() + player.deadline(step)
    while fault := look():
        if not step.options.get("eventually") or time.monotonic() > end or player.halted:
            raise Unmet(fault)
        time.sleep(0.02)  # a file tells nobody that it has changed


def no_survivors(player: Player, step: Step) -> None:
    left = player.talk.agent.orphans(deadline=player.deadline(step))
    if left:
        raise Unmet(
            Fault("processes that it started still live", step.line, came=shorten([one.command for one in left]))
        )


def peak_memory(player: Player, step: Step) -> None:
    mib = player.talk.agent.peak_rss() / 2**20
    difference = match(step.value, mib, player.names).difference
    if difference:
        raise Unmet(compared("peak memory in MiB", step.line, difference))


WAITS: dict[str, Callable[[Player, Step], None]] = {
    "expect": expect, "sequence": sequence, "reached": reached, "request": request, "exit": await_exit,
    "wait_stderr": wait_stderr, "file": file, "entries": entries, "no_survivors": no_survivors,
    "peak_memory": peak_memory,
}  # fmt: skip
