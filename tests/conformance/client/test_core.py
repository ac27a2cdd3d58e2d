"""The connection's state without a process: correlation, feeds, what a broken agent may do to it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.client.core import STDERR_KEPT, Core, Feed
from conformance.client.errors import AgentDied, ClientClosed, CommandRefused, EventsLost, ProtocolError
from conformance.client.records import BashDelta, Response, UnknownEvent, event_type
from protocol.commands import Abort, Bash, GetState


def new_core(limit: int = 1 << 20) -> Core:
    return Core(buffer_bytes=limit, now=lambda: 0.0)


def line(**record: Any) -> bytes:
    return json.dumps(record).encode() + b"\n"


def response(id: Any, command: str = "abort", **more: Any) -> bytes:
    return line(id=id, type="response", command=command, **{"success": True, **more})


def sent(core: Core) -> list[dict[str, Any]]:
    records = []
    while core.outbox.ready and (record := core.outbox.take()) is not None:
        assert record.endswith(b"\n") and record.count(b"\n") == 1
        records.append(json.loads(record))
    return records


def test_a_command_leaves_with_an_id_of_ours_and_its_response_finds_it() -> None:
    core = new_core()
    first, second = core.request(Abort()), core.request({"type": "new_thing", "x": [1], "id": "theirs"})
    assert sent(core) == [{"type": "abort", "id": first.id}, {"type": "new_thing", "x": [1], "id": second.id}]
    assert first.id != second.id
    core.receive(response(second.id, "new_thing", data={"y": 2}))
    assert (first.done, second.done) == (False, True)
    assert json.loads(bytes(second.answer().data)) == {"y": 2}  # type: ignore[arg-type]


@given(st.permutations(range(6)), st.integers(1, 40))
def test_answers_find_their_requests_in_any_order_and_however_they_are_cut(order: list[int], size: int) -> None:
    core = new_core()
    requests = [core.request(Abort()) for _ in range(6)]
    stream = b"".join(response(requests[at].id, data={"n": at}) for at in order)
    for start in range(0, len(stream), size):
        core.receive(stream[start : start + size])
    assert [json.loads(bytes(each.answer().data))["n"] for each in requests] == list(range(6))  # type: ignore[arg-type]


def test_a_refusal_tells_command_id_message_code_and_details() -> None:
    core = new_core()
    pending = core.request(Abort())
    details = {"providerId": "p", "operation": "logout"}
    core.receive(
        response(pending.id, success=False, error="no", errorCode="credential_synchronization", errorDetails=details)
    )
    with pytest.raises(CommandRefused, match="abort was refused: no") as refused:
        pending.answer()
    assert (refused.value.command, refused.value.id, refused.value.message) == ("abort", pending.id, "no")
    assert (refused.value.code, refused.value.details) == ("credential_synchronization", details)


def test_every_waiter_fails_with_the_first_reason_as_an_exception_of_its_own() -> None:
    core = new_core()
    one, two, feed = core.request(Abort()), core.request(Abort()), core.listen()
    core.receive_stderr(b"out of luck\n")
    core.exited(-9)
    core.conclude()
    core.fail(ProtocolError("later"))
    errors = []
    for waiter in (one.answer, two.answer, feed.take):
        with pytest.raises(AgentDied, match=r"ended by SIGKILL\nstderr: out of luck") as died:
            waiter()
        errors.append(died.value)
    assert len({id(error) for error in errors}) == 3
    assert (errors[0].exit_code, errors[0].signal) == (None, "SIGKILL")
    with pytest.raises(AgentDied):
        core.request(Abort())
    assert core.outbox.take() is None


@pytest.mark.parametrize(
    "bad", [b"hello\n", b"\n", b"[]\n", b"null\n", b'{"a":1}\n', b'{"type":5}\n', b'{"type":"agent_st\n']
)
def test_a_line_that_is_no_record_ends_the_connection_and_is_shown(bad: bytes) -> None:
    core = new_core()
    pending = core.request(Abort())
    core.receive(line(type="agent_start") + bad + response(pending.id))
    with pytest.raises(ProtocolError, match="is no record") as error:
        pending.answer()
    assert error.value.line.strip() == bad.strip()


@pytest.mark.parametrize("id", ["c99", 7, None, True, "", {"a": 1}])
def test_a_response_to_a_request_that_was_never_made_ends_the_connection(id: Any) -> None:
    core = new_core()
    pending = core.request(Abort())
    core.receive(response(id))
    with pytest.raises(ProtocolError, match="never made"):
        pending.answer()


def test_a_command_that_the_agent_cannot_read_ends_the_connection() -> None:
    core = new_core()
    pending = core.request(Abort())
    core.receive(line(type="response", command="parse", success=False, error="Failed to parse command: x"))
    with pytest.raises(ProtocolError, match="could not read"):
        pending.answer()


def test_a_second_response_is_dropped_and_noted() -> None:
    core = new_core()
    pending = core.request(Abort())
    core.receive(response(pending.id) * 2)
    assert pending.answer().success and core.failure is None
    assert "nobody waits" in core.oddities[0]


def test_a_response_that_names_another_command_counts_and_is_noted() -> None:
    core = new_core()
    pending = core.request(Abort())
    core.receive(response(pending.id, "bash"))
    assert pending.answer().command == "bash"
    assert "says that it answers 'bash'" in core.oddities[0]


def test_an_abandoned_request_is_not_sent_if_it_has_not_left_and_else_its_answer_is_dropped() -> None:
    core = new_core()
    kept, waiting = core.request(GetState()), core.request(Abort())
    core.outbox.take()
    core.abandon(waiting)
    core.abandon(kept)
    assert sent(core) == []
    core.receive(response(kept.id, "get_state"))
    assert core.failure is None


def test_what_nobody_listens_to_is_kept_nowhere_and_each_listener_gets_all_from_its_start() -> None:
    core = new_core()
    core.receive(line(type="agent_start"))
    first = core.listen()
    core.receive(line(type="turn_start"))
    second = core.listen()
    core.receive(line(type="agent_settled"))
    assert [event_type(first.take()) for _ in range(2)] == ["turn_start", "agent_settled"]
    assert event_type(second.take()) == "agent_settled"
    assert not first.ready and not second.ready


def test_a_feed_that_is_dropped_is_fed_no_more() -> None:
    core = new_core()
    feed = core.listen()
    assert len(core._feeds) == 1
    del feed
    assert len(core._feeds) == 0


def test_a_full_feed_loses_the_newest_tells_how_many_and_goes_on() -> None:
    core = new_core(limit=2000)
    slow, quick = core.listen(), core.listen()
    seen = 0
    for n in range(10):
        core.receive(line(type="noise", n=n))
        seen += quick.take() is not None
    assert seen == 10
    kept = [slow.take().record["n"] for _ in range(3)]
    assert kept == [0, 1, 2]
    with pytest.raises(EventsLost) as lost:
        slow.take()
    assert lost.value.count == 7
    core.receive(line(type="noise", n=11))
    assert slow.take().record["n"] == 11


@given(st.lists(st.sampled_from(["put", "take"]), max_size=60))
def test_a_feed_never_holds_more_than_its_limit_and_counts_whatever_it_lost(steps: list[str]) -> None:
    feed: Feed[int] = Feed(2000)
    put = taken = lost = 0
    for step in steps:
        if step == "put":
            feed.put(put, 100)
            put += 1
        elif feed.ready:
            try:
                item = feed.take()
                assert item == taken + lost
                taken += 1
            except EventsLost as error:
                lost += error.count
        assert feed._bytes <= 2000
    feed.end()
    while True:
        try:
            if feed.take() is None:
                break
            taken += 1
        except EventsLost as error:
            lost += error.count
    assert taken + lost == put


def test_the_output_of_two_shells_is_told_apart_and_ends_with_the_response() -> None:
    core = new_core()
    one, two = core.request(Bash(command="a")), core.request(Bash(command="b"))
    feeds = [core.listen_to_shell(each.id) for each in (one, two)]
    for id, text in ((two.id, "b1"), (one.id, "a1"), (two.id, "b2"), ("stranger", "x")):
        core.receive(line(type="bash_execution_update", id=id, channel="stdout", delta=text))
    core.receive(response(two.id, "bash"))
    assert [feeds[1].take() for _ in range(3)] == [BashDelta("stdout", "b1"), BashDelta("stdout", "b2"), None]
    assert feeds[0].take() == BashDelta("stdout", "a1")
    assert not feeds[0].ready


def test_an_unknown_event_and_a_known_one_of_another_shape_are_kept_as_they_came() -> None:
    core = new_core()
    feed = core.listen()
    core.receive(line(type="brand_new", deep={"a": [1]}) + line(type="queue_update", steering=5, followUp=[]))
    first, second = feed.take(), feed.take()
    assert first == UnknownEvent("brand_new", {"type": "brand_new", "deep": {"a": [1]}})
    assert isinstance(second, UnknownEvent) and second.record["steering"] == 5


def test_a_dialog_that_nobody_listens_to_is_cancelled_and_a_notice_is_not_answered() -> None:
    core = new_core()
    core.receive(line(type="extension_ui_request", id="u1", method="notify", message="hi"))
    core.receive(line(type="extension_ui_request", id="u2", method="confirm", title="t", message="m"))
    assert sent(core) == [{"type": "extension_ui_response", "id": "u2", "cancelled": True}]
    feed = core.listen_to_ui()
    core.receive(line(type="extension_ui_request", id="u3", method="oauth_prompt", provider="p", loginId="l"))
    request = feed.take()
    assert request is not None and request.wants_answer and request.extra == {"provider": "p", "loginId": "l"}
    core.answer_ui("u3", {"value": "v"})
    assert sent(core) == [{"type": "extension_ui_response", "id": "u3", "value": "v"}]


def test_closing_refuses_new_requests_lets_the_open_ones_be_answered_and_ends_listeners_well() -> None:
    core = new_core()
    open_one, lost_one, feed = core.request(Abort()), core.request(Abort()), core.listen()
    core.start_closing()
    with pytest.raises(ClientClosed):
        core.request(Abort())
    assert len(sent(core)) == 2 and core.outbox.ready and core.outbox.take() is None
    core.receive(response(open_one.id))
    core.exited(0)
    core.conclude()
    assert open_one.answer().success
    with pytest.raises(ClientClosed):
        lost_one.answer()
    assert feed.take() is None


def test_stderr_is_bounded_and_keeps_the_end() -> None:
    core = new_core()
    for n in range(40):
        core.receive_stderr(b"%05d" % n + b"x" * 10_000)
    assert len(core.stderr) == STDERR_KEPT
    assert core.stderr.endswith("x") and "00039" in core.stderr and "00001" not in core.stderr


def test_a_response_stands_in_the_echo_among_the_events_where_it_came() -> None:
    core = new_core()
    feed = core.listen()
    pending = core.request(Abort(), feed)
    core.receive(line(type="agent_settled") + response(pending.id) + line(type="agent_start"))
    kinds = [type(feed.take()) for _ in range(3)]
    assert kinds[1] is Response


def test_a_tree_deeper_than_any_json_library_reads_is_a_response() -> None:
    core = new_core()
    pending = core.request(Abort())
    deep = b'{"children":[' * 20_000 + b"]}" * 20_000
    core.receive(
        b'{"id":"%s","type":"response","command":"abort","success":true,"data":%s}\n' % (pending.id.encode(), deep)
    )
    assert pending.answer().success


def test_lone_surrogates_and_invalid_utf8_do_not_end_the_connection() -> None:
    core = new_core()
    feed = core.listen()
    core.receive(b'{"type":"noise","a":"\\ud83d"}\n{"type":"noise","b":"\xff"}\n')
    assert [feed.take().record.popitem()[1] for _ in range(2)] == ["\ud83d", "\ufffd"]
