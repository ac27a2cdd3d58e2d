"""The owner of tasks in any order of events: each wait ends once, each pause too, and nothing is lost or left."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from actors.task.child_message import Contact
from actors.task.effects import (
    Announce,
    ArmBudget,
    Budgets,
    Changed,
    Close,
    Effects,
    Paused,
    Relay,
    Resolve,
    Room,
    StartTask,
    StopTask,
    WaitPolicy,
)
from actors.task.owner import TaskOwner
from actors.task.pausing import NOT_CANCELLED, NOT_CLEANED
from actors.task.state import Refused
from protocol import tasks as t
from tests.actors.task.owners import DONE, agent, command


class Course:
    """An owner, and a random course of events around it. Runners take their orders and report late, or wrongly."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        room: dict[t.TaskKind, Room] = {"agent": Room(running=2, queued=3)}
        self.owner = TaskOwner("1", Budgets(), room)
        self.runners: set[str] = set()
        self.stopping: dict[str, t.CancelCause] = {}
        self.unreaped: set[str] = set()
        self.outcomes: Counter[str] = Counter()
        self.announced: Counter[str] = Counter()
        self.admitted: list[str] = []
        self.timers: list[str] = []
        self.waited = 0
        self.closed = 0
        self.is_paused = False
        self.pauses: list[list[str]] = []
        self.answers: Counter[int] = Counter()
        self.met: set[str | None] = set()
        self.asked: list[tuple[str, str]] = []
        self.relayed: dict[str, bool] = {}
        self.answered: Counter[str] = Counter()

    def play(self) -> None:
        for step in range(60):
            self.rng.choice(
                (self.launch, self.launch, self.wait, self.budget, self.release, self.give_up, self.kill, self.end)
                + (self.end, self.reap, self.spawn, self.limit, self.ask, self.ask, self.answer, self.withdraw)
                + ((self.pause, self.resume, self.resume) if self.rng.random() < 0.5 else ())
                + ((self.close,) if step > 40 else ())
            )()
        self.close()
        while self.unreaped:
            self.rng.choice((self.end, self.reap, self.budget, self.kill))()

    def take(self, effects: Effects) -> None:
        for effect in effects:
            match effect:
                case StartTask(task_id):
                    assert self.closed == 0 and task_id not in self.runners and not self.is_paused
                    self.runners.add(task_id)
                    self.unreaped.add(task_id)
                case StopTask(task_id, cause):
                    assert self.stopping.setdefault(task_id, cause) == cause
                case Resolve(wait, outcome):
                    self.outcomes[wait.id] += 1
                    if isinstance(outcome, t.SettledWait):
                        assert outcome.result == self.owner.task(outcome.task_id).result
                case ArmBudget(wait_id):
                    self.timers.append(wait_id)
                case Announce(task_id):
                    self.announced[task_id] += 1
                    assert self.owner.task(task_id).was_background
                case Paused(number, error, receipts):
                    self.answers[number] += 1
                    assert [each.task_id for each in receipts] == self.pauses[number]
                    left = self.unreaped & set(self.pauses[number])
                    failed = {each.task_id for each in receipts if isinstance(each.cleanup, t.CleanupFailed)}
                    assert left == failed and (error is not None) == bool(left)
                    self.met.add(error and error.partition(":")[0])
                case Relay(message):
                    assert message.message_id not in self.relayed
                    self.relayed[message.message_id] = message.is_open
                case Close():
                    self.closed += 1
                    assert not self.unreaped
                case Changed(task_id):
                    self.owner.task(task_id).record()

    def attempt(self, action: Any) -> None:
        try:
            self.take(action())
        except Refused:
            return

    def any_task(self) -> str:
        return self.rng.choice(self.admitted) if self.admitted else "none"

    def launch(self) -> None:
        kind = self.rng.choice((command, agent))
        policy = WaitPolicy(self.rng.choice(("default", "background", "foreground")), self.rng.choice((None, 0, 5)))
        if policy.kind != "foreground":
            policy = WaitPolicy(policy.kind)
        try:
            task_id, effects = self.owner.launch(kind(f"op{self.rng.randrange(40)}"), policy, self.rng.randrange(6))
        except Refused:
            return
        self.waited += 1
        if task_id not in self.admitted:
            assert not self.is_paused
            self.admitted.append(task_id)
        self.take(effects)

    def wait(self) -> None:
        def register() -> Effects:
            designated = self.rng.random() < 0.5
            effects = self.owner.wait(self.any_task(), self.rng.choice((None, 0, 7)), 9, is_designated=designated)
            self.waited += 1
            return effects

        self.attempt(register)

    def budget(self) -> None:
        if self.timers:
            self.take(self.owner.budget_passed(self.rng.choice(self.timers)))

    def release(self) -> None:
        self.take(self.owner.release("input-needed"))

    def give_up(self) -> None:
        self.take(self.owner.give_up(self.rng.choice((*range(6), 9))))

    def kill(self) -> None:
        self.attempt(lambda: self.owner.cancel(self.any_task(), self.rng.choice(("user", "execution-timeout")))[1])

    def ask(self) -> None:
        """Of what runs, whatever it is. What is being stopped can be answered no more."""
        live = [task_id for task_id in sorted(self.unreaped) if self.owner.task(task_id).result is None]
        if live:
            task_id, name = self.rng.choice(live), f"ask-{len(self.asked)}"
            runs = self.owner.task(task_id).phase == "running"
            self.asked.append((task_id, name))
            self.take(self.owner.spoke(task_id, name, Contact("need_decision", "?")))
            assert self.relayed[name] == runs

    def answer(self) -> None:
        if self.asked:
            task_id, name = self.rng.choice(self.asked)
            try:
                question, effects = self.owner.answer(self.rng.choice((None, task_id)), name)
            except Refused as refused:
                assert str(refused) == f'No pending ask from "{name}"'
                return
            assert question.task_id == task_id and self.relayed[name] and self.owner.task(task_id).phase == "running"
            self.answered[name] += 1
            self.take(effects)

    def withdraw(self) -> None:
        if self.asked:
            self.take(self.owner.withdrawn(*self.rng.choice(self.asked)))

    def spawn(self) -> None:
        if self.unreaped:
            self.attempt(lambda: self.owner.spawned(self.rng.choice(sorted(self.unreaped))))

    def limit(self) -> None:
        if self.unreaped:
            self.attempt(lambda: self.owner.over_limit(self.rng.choice(sorted(self.unreaped))))

    def end(self) -> None:
        if self.unreaped:
            result = self.rng.choice((DONE, t.TaskCompleted(exit_code=3), t.TaskFailed("RunnerFailed", "x")))
            self.attempt(lambda: self.owner.ended(self.rng.choice(sorted(self.unreaped)), result))

    def reap(self) -> None:
        if not self.unreaped:
            return
        task_id = self.rng.choice(sorted(self.unreaped))
        if self.owner.task(task_id).phase not in ("cancelling", "settled"):
            return
        if self.rng.random() < 0.2:
            self.attempt(lambda: self.owner.cleanup_failed(task_id, ("x",)))
        else:
            self.unreaped.discard(task_id)
            self.take(self.owner.reaped(task_id))

    def pause(self) -> None:
        tasks = [task for task in self.owner.tasks if not task.is_reaped]
        begins = any(task.launch.kind == "command" and task.phase == "running" and not task.spawned for task in tasks)
        self.pauses.append([task.id for task in tasks])
        self.is_paused = True
        effects = self.owner.pause(len(self.pauses) - 1)
        assert not any(task.phase == "queued" for task in self.owner.tasks)
        kinds = [self.owner.task(each.task_id).launch.kind for each in effects if isinstance(each, StopTask)]
        assert kinds == sorted(kinds) and not (begins and "command" in kinds)
        self.met |= {name for name, is_met in (("begins", begins), (self.owner.state, True)) if is_met}
        self.take(effects)

    def resume(self) -> None:
        before = self.owner.generation
        self.attempt(self._resume)
        assert (self.owner.generation != before) == (self.is_paused and self.owner.state == "open")
        self.is_paused = self.is_paused and self.owner.state != "open"

    def _resume(self) -> Effects:
        assert self.owner.resume() == self.owner.generation
        return []

    def close(self) -> None:
        self.take(self.owner.close())


def test_in_two_thousand_courses_each_wait_ends_once_and_nothing_is_lost_or_left() -> None:
    causes, met = set(), set()
    for seed in range(2000):
        course = Course(seed)
        course.play()
        owner = course.owner
        assert set(course.outcomes.values()) <= {1}, seed
        assert sum(course.outcomes.values()) == course.waited, seed
        assert [task.id for task in owner.tasks] == course.admitted, seed
        assert all(task.result is not None and task.is_reaped for task in owner.tasks), seed
        assert (owner.state, course.closed, len(owner.watching)) == ("closed", 1, 0), seed
        for task in owner.tasks:
            cause = course.stopping.get(task.id)
            if isinstance(task.result, t.TaskCancelled) and cause is not None:
                assert task.result.cause == cause, seed
                causes.add(cause)
            assert course.announced[task.id] == int(task.was_background), seed
        met |= course.met
        assert list(course.relayed) == [name for _, name in course.asked], seed
        assert set(course.answered.values()) <= {1} and not list(owner.questions), seed
        assert [course.answers[number] for number in range(len(course.pauses))] == [1] * len(course.pauses), seed
    assert causes == {"user", "execution-timeout", "owner-close"}
    assert met == {"begins", "open", "closing", "closed", None, NOT_CANCELLED, NOT_CLEANED.partition(":")[0]}
