"""A desk of tasks on threads, with real commands, for tests that stand where its session and its calls would."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import psutil

from actors.clock import Clock
from actors.mail import LaunchShell, PauseTasks, ShellTaskPlan, TaskAnswer, TaskChanged, TasksPaused
from actors.probe import Probe
from actors.task.desk import TaskDesk
from actors.task.effects import Budgets, WaitPolicy
from actors.task.launch import CommandLauncher
from actors.task.notice import TaskNotice
from actors.task.shell import ShellTask
from protocol.tasks import TaskRecord
from runtime.alarm import Alarm
from runtime.threads import ThreadHost, start_pump


class Session(Probe[Any]):
    """Once it is broken, whoever tells it anything dies of that."""

    is_broken = False

    def tell(self, mail: Any) -> None:
        if self.is_broken:
            raise RuntimeError("injected")
        super().tell(mail)


class DeskBench:
    """`session` is told what a session would be."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.session, self.owner, self.root = Session(), Probe[Any](), Probe[Any]()
        self.host = ThreadHost()
        self.clock = self.host.start(Clock(time.monotonic, Alarm(start_pump).set), "clock", self.root)
        self.slept: list[float] = []
        self.patience = 1  # so many times as long is waited between SIGTERM and SIGKILL
        self._launcher = CommandLauncher(start_pump, "/bin/bash", None, lambda _: None, time.monotonic, self._sleep)
        self.tasks: dict[str, Any] = {}
        desk = TaskDesk("s", Budgets(), self.session, self.clock, self._start_command, self.start_agent, time.monotonic)
        self.desk = self.host.start(desk, "desk", self.owner, "desk")

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        time.sleep(seconds * self.patience)

    def _start_command(self, ref: Any, plan: Any, desk: Any, observer: Any) -> Any:
        start, now = self._launcher.start, time.monotonic
        task = ShellTask(ref, plan, desk, observer, self.clock, start, self._open_log, now)
        child = self.tasks[ref.task_id] = self.host.start(task, ref.task_id, desk, ref.task_id)
        return child

    def start_agent(self, ref: Any, plan: Any, desk: Any) -> Any:
        raise NotImplementedError

    def _open_log(self) -> tuple[int, str]:
        path = str(self.folder / f"{time.monotonic_ns()}.log")
        return os.open(path, os.O_RDWR | os.O_CREAT), path

    # -- asking

    def launch(self, command: str, kind: Any = "background", timeout_s: int = 300) -> Probe[Any]:
        """The call that launches it, which hears once."""
        call = Probe[Any]()
        environment = {"PATH": os.environ["PATH"]}
        plan = ShellTaskPlan(command, str(self.folder), "s", environment, timeout_s)
        self.desk.tell(LaunchShell(f"op-{time.monotonic_ns()}", plan, WaitPolicy(kind), call))
        return call

    def begun(self, command: str) -> str:
        """Launches it in the background; its task id once it has begun."""
        answer = self.launch(command).of(TaskAnswer)
        return str(answer.outcome.task_id)

    def said(self, fifo: str) -> list[int]:
        """The process ids that a command wrote into a FIFO of this name, once it has."""
        return [int(word) for word in (self.folder / fifo).read_text(encoding="utf-8").split()]

    def pause(self) -> Probe[TasksPaused]:
        stage = Probe[Any]()
        self.desk.tell(PauseTasks(stage))
        return stage

    def notice(self) -> TaskNotice:
        while True:
            mail = self.session.of(TaskChanged)
            if mail.notice is not None:
                return mail.notice  # type: ignore[no-any-return]

    def record(self, task_id: str, state: str) -> TaskRecord:
        """The first that shows the task in this state; what was told before is dropped."""
        while True:
            mail = self.session.of(TaskChanged)
            if mail.record.ref.task_id == task_id and mail.record.state == state:
                return mail.record  # type: ignore[no-any-return]


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
