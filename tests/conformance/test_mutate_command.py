"""Our client against our program, broken in each way: it tolerates that or says what is wrong, and never hangs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from conformance.client import (
    AgentDied,
    AsyncRpcClient,
    ClientError,
    CommandRefused,
    DeadlineExceeded,
    Options,
    ProtocolError,
    RpcClient,
)
from conformance.mutations import KINDS

ROOT = Path(__file__).resolve().parents[2]
IMPATIENT = Options(
    start_deadline=5, quick_deadline=1.0, slow_deadline=1.0, idle_check=0.3, eof_grace=5.0, term_grace=1.0
)
FINE = type(None)

# For each mutation: with which argument, and what our client makes of it in `conversation`.
OUTCOMES: list[tuple[str, tuple[str, ...], tuple[type, ...]]] = [
    ("--drop", ("agent_settled",), (ProtocolError,)),
    ("--drop", ("agent_start",), (FINE,)),
    ("--drop", ("message_end",), (FINE,)),
    ("--drop", ("response",), (DeadlineExceeded,)),
    ("--drop-response", ("prompt",), (ProtocolError, DeadlineExceeded)),
    ("--drop-response", ("get_state",), (DeadlineExceeded,)),
    ("--lose-bash-result", (), (DeadlineExceeded,)),
    ("--double", ("response",), (FINE,)),
    ("--double", ("agent_settled",), (FINE,)),
    ("--double", ("message_update",), (FINE,)),
    ("--wrong-type", ("agent_settled",), (ProtocolError,)),
    ("--wrong-type", ("response",), (DeadlineExceeded,)),
    ("--mistype", ("usage",), (FINE,)),
    ("--mistype", ("success",), (DeadlineExceeded,)),
    ("--wrong-id", (), (ProtocolError,)),
    ("--false-success", (), (FINE,)),
    ("--truncate", ("message_end",), (ProtocolError,)),
    ("--join", ("agent_start",), (ProtocolError,)),
    ("--print", ("hello from a library",), (ProtocolError,)),
    ("--swap-deltas", (), (FINE,)),
    ("--late-event", (), (FINE,)),
    ("--early-result", (), (FINE,)),
    ("--silence", ("5",), (DeadlineExceeded,)),
    ("--die-after", ("8",), (AgentDied,)),
    ("--lose-notice", (), (FINE,)),
    ("--double-notice", (), (FINE,)),
    ("--foreground-notice", (), (FINE,)),
    ("--patient-kill", (), (FINE,)),
    ("--unasked-update", (), (FINE,)),
]


def broken(atomic: list[str], *flags: str) -> list[str]:
    return [sys.executable, "-m", "conformance", "mutate", *flags, "--", *atomic]


@pytest.fixture(autouse=True)
def _packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def conversation(command: list[str]) -> None:
    with RpcClient(command, options=IMPATIENT) as client:
        for _ in range(2):
            client.prompt("SAY one two three", deadline=2.0).wait()
        client.prompt('TOOL bash {"command": "true"}', deadline=2.0).wait()
        assert client.bash("echo out; echo err >&2", deadline=1.0).result().exit_code == 0
        with suppress(CommandRefused):
            client.set_steering_mode("sometimes")  # type: ignore[arg-type]
        assert client.get_state().message_count


async def the_same_on_asyncio(command: list[str]) -> None:
    async with AsyncRpcClient(command, options=IMPATIENT) as client:
        for _ in range(2):
            await client.prompt("SAY one two three", deadline=2.0).wait()
        assert (await client.bash("echo out; echo err >&2", deadline=1.0)).exit_code == 0
        with suppress(CommandRefused):
            await client.set_steering_mode("sometimes")  # type: ignore[arg-type]
        assert (await client.get_state()).message_count


def test_every_kind_has_an_outcome() -> None:
    assert {flag for flag, _, _ in OUTCOMES} == {f"--{kind}" for kind in KINDS} | {"--die-after"}


@pytest.mark.parametrize(("flag", "arguments", "outcomes"), OUTCOMES)
def test_the_client_says_what_is_wrong_or_tolerates_it(
    atomic: list[str], flag: str, arguments: tuple[str, ...], outcomes: tuple[type, ...]
) -> None:
    raised: Any = None
    try:
        conversation(broken(atomic, flag, *arguments))
    except ClientError as error:
        raised = error
    assert isinstance(raised, outcomes), repr(raised)


@pytest.mark.parametrize("flag", [("--drop", "agent_settled"), ("--wrong-id",), ("--silence", "5"), ("--swap-deltas",)])
def test_so_does_the_one_on_asyncio(atomic: list[str], flag: tuple[str, ...]) -> None:
    outcomes = next(each[2] for each in OUTCOMES if (each[0], *each[1]) == flag)
    raised: Any = None
    try:
        asyncio.run(the_same_on_asyncio(broken(atomic, *flag)))
    except ClientError as error:
        raised = error
    assert isinstance(raised, outcomes), repr(raised)


@pytest.mark.parametrize("seed", range(4))
def test_many_mutations_at_random_never_hang_the_client(atomic: list[str], seed: int) -> None:
    kinds = ["--swap-deltas", "--late-event", "--early-result", "--double", "response", "--drop", "message_update"]
    worse = ["--truncate", "turn_end", "--wrong-id", "--drop-response", "bash"]
    flags = ["--seed", str(seed), "--chance", "0.2", *kinds, *worse]
    with suppress(ClientError):  # which one depends on the seed
        conversation(broken(atomic, *flags))


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ((), "how it is to be broken is missing"),
        (("--silence", "soon"), "a number is needed, not 'soon'"),
        (("--nonsense",), "unrecognized arguments"),
    ],
)
def test_a_wrong_call_is_refused(flags: tuple[str, ...], told: str) -> None:
    run = subprocess.run(broken(["true"], *flags), capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (2, "") and told in run.stderr
