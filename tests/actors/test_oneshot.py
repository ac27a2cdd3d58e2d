"""OneShot: which prompts it sends, when, and with what exit code it ends the process."""

from __future__ import annotations

from typing import Any

import pytest

from actors.mail import (
    AnswerOpen,
    CloseIntake,
    Commands,
    ExtensionFailed,
    InputEnded,
    PromptEnded,
    SessionCurrent,
    SessionLost,
    StdinBytes,
    StdinEnded,
)
from actors.oneshot import NO_PROMPT, SESSION_FAILED, OneShot, Prompts
from actors.print_outcome import Outcome
from actors.probe import Probe
from actors.pump import Window
from protocol.commands import Prompt
from protocol.messages import ImageContent

WHOLE = PromptEnded(True)


class Bench:
    def __init__(self, prompts: Prompts) -> None:
        self.complaints: list[str] = []
        self.root, self.session = Probe[Any](), Probe[Any]()
        self.one_shot = OneShot(prompts, self.root, self.complaints.append)

    def tell(self, *mails: Any) -> Bench:
        for mail in mails:
            self.one_shot.receive(mail)
        return self

    def begun(self, stdin: bytes = b"") -> Bench:
        return self.tell(SessionCurrent(self.session), StdinBytes(stdin), StdinEnded())

    def sent(self) -> list[Prompt]:
        commands = [mail for mail in self.session.drain() if isinstance(mail, Commands)]
        return [command for mail in commands for _, command in mail.items]

    def exit_codes(self) -> list[int]:
        return [mail.exit_code for mail in self.root.drain() if isinstance(mail, InputEnded)]


def test_stdin_files_and_first_message_are_one_prompt_with_nothing_between() -> None:
    image = ImageContent("aGk=", "image/png")
    bench = Bench(Prompts(("first", "second"), "<file/>\n", (image,))).begun(b"  piped \n")
    assert bench.sent() == [Prompt(message="piped<file/>\nfirst", images=(image,))]


def test_nothing_is_sent_before_the_session_stands_and_stdin_has_ended() -> None:
    bench = Bench(Prompts(("go",)))
    bench.tell(StdinBytes(b"a"))
    bench.tell(SessionCurrent(bench.session))
    assert bench.sent() == []
    bench.tell(StdinEnded())
    assert bench.sent() == [Prompt(message="ago")]


def test_the_stdin_pump_is_acked() -> None:
    window = Window()
    Bench(Prompts(("go",))).tell(StdinBytes(b"a", window.admit(1)))
    assert window._messages == 0


@pytest.mark.parametrize(("tells", "said"), [(True, ["Extension error (x): broke"]), (False, [])])
def test_the_error_of_an_extension_is_told_where_no_event_tells_it_and_costs_nothing(
    tells: bool, said: list[str]
) -> None:
    bench = Bench(Prompts(("go",), tells_errors=tells)).begun()
    bench.tell(ExtensionFailed("x", "broke"), WHOLE)
    assert (bench.complaints, bench.exit_codes()) == (said, [0])


def test_a_further_message_waits_until_the_last_has_settled() -> None:
    bench = Bench(Prompts(("one", "two"))).begun()
    assert [prompt.message for prompt in bench.sent()] == ["one"]
    bench.tell(WHOLE)
    assert [prompt.message for prompt in bench.sent()] == ["two"]
    assert bench.exit_codes() == []
    bench.tell(WHOLE)
    assert bench.exit_codes() == [0]


def test_only_the_last_answer_decides_the_exit_code() -> None:
    bench = Bench(Prompts(("one", "two"))).begun().tell(PromptEnded(False, "Overloaded"), WHOLE)
    assert (bench.exit_codes(), bench.complaints) == ([0], [])
    bench = Bench(Prompts(("one", "two"))).begun().tell(WHOLE, PromptEnded(False, "Overloaded"))
    assert (bench.exit_codes(), bench.complaints) == ([1], ["Overloaded"])


def test_a_failed_answer_is_not_repeated_on_stderr_where_events_tell_it() -> None:
    bench = Bench(Prompts(("one",), tells_errors=False)).begun().tell(PromptEnded(False, "Overloaded"))
    assert (bench.exit_codes(), bench.complaints) == ([1], [])


def test_a_refused_prompt_is_told_on_stderr_in_every_mode_and_ends_the_process() -> None:
    bench = Bench(Prompts(("one", "two"), tells_errors=False)).begun()
    bench.tell(PromptEnded(False, "No API key", refused=True))
    assert [prompt.message for prompt in bench.sent()] == ["one"]
    assert (bench.exit_codes(), bench.complaints) == ([1], ["No API key"])


def test_empty_prompts_are_skipped() -> None:
    bench = Bench(Prompts(("", " ", "three"))).begun()
    assert [prompt.message for prompt in bench.sent()] == ["three"]


def test_without_any_prompt_a_new_session_is_a_mistake() -> None:
    bench = Bench(Prompts()).begun(b" \n")
    assert (bench.exit_codes(), bench.complaints) == ([1], [NO_PROMPT])


def test_without_any_prompt_an_opened_session_ends_as_its_last_message_did() -> None:
    assert Bench(Prompts(earlier=Outcome("hi\n", True, ""))).begun().exit_codes() == [0]
    bench = Bench(Prompts(earlier=Outcome(error="Request error"))).begun()
    assert (bench.exit_codes(), bench.complaints) == ([1], ["Request error"])


def test_a_session_that_dies_is_not_waited_for() -> None:
    for mail in (SessionCurrent(Probe()), SessionLost(Probe(), "ValueError", frozenset())):
        bench = Bench(Prompts(("one",))).begun().tell(mail)
        assert (bench.exit_codes(), bench.complaints) == ([1], [SESSION_FAILED])


def test_after_a_signal_nothing_more_is_sent_or_told() -> None:
    bench = Bench(Prompts(("one", "two"))).begun().tell(CloseIntake())
    bench.sent()
    bench.tell(PromptEnded(False, "Request aborted"))
    assert (bench.sent(), bench.exit_codes(), bench.complaints) == ([], [0], [])


def test_when_a_part_of_the_house_died_root_is_answered() -> None:
    bench = Bench(Prompts(("one", "two"))).begun().tell(AnswerOpen("clock failed"))
    assert bench.root.drain() == []
    bench.tell(AnswerOpen("clock failed", last=True))
    assert bench.root.drain() == [InputEnded(answered=True, exit_code=1)]
    bench.tell(WHOLE)
    assert [prompt.message for prompt in bench.sent()] == ["one"]
