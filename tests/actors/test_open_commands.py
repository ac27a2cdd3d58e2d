"""Refusals come in the order of the wire, and of what is open each is answered by somebody."""

from __future__ import annotations

import random

from actors.mail import SessionMail, Ticket
from actors.open_commands import PASSING, OpenCommands
from actors.probe import Probe

ORDINARY, PASSES = "get_state", "abort"


def test_serials_count_from_one() -> None:
    opened = OpenCommands()
    assert [opened.begin(b"1", ORDINARY), opened.begin(b"2", None)] == [
        Ticket(1, b"1", ORDINARY),
        Ticket(2, b"2", None),
    ]


def test_a_refusal_waits_for_what_stands_before_it_but_not_for_what_passes() -> None:
    assert PASSES in PASSING and ORDINARY not in PASSING
    opened = OpenCommands()
    _, first, refused = (opened.begin(b"", name) for name in (PASSES, ORDINARY, ORDINARY))
    opened.refuse([refused], "no")
    assert opened.due() == []
    opened.close([first.serial])
    assert opened.due() == [(refused, "no")]
    opened.close([refused.serial])
    assert opened.due() == []


def test_only_what_went_to_a_lost_session_is_lost_and_a_refusal_keeps_its_reason() -> None:
    here, there = Probe[SessionMail](), Probe[SessionMail]()
    opened = OpenCommands()
    ours, refused, alive, other, nobodys = (opened.begin(b"", ORDINARY) for _ in range(5))
    for ticket, session in ((ours, here), (refused, here), (alive, here), (other, there)):
        opened.send(ticket, session)
    opened.refuse([refused], "no")
    assert opened.lost(here, frozenset({alive.serial}), "dead") == [(ours, "dead"), (refused, "no")]
    everything = [(ours, "end"), (refused, "no"), (alive, "end"), (other, "end"), (nobodys, "end")]
    assert opened.all("end") == everything  # what is lost is open until it has been told


def test_in_any_order_each_is_answered_once_and_ordinary_ones_in_their_order() -> None:
    for seed in range(300):
        rng = random.Random(seed)
        opened = OpenCommands()
        tickets = [opened.begin(b"", rng.choice((ORDINARY, PASSES))) for _ in range(12)]
        waiting, refused, answered = list(tickets), set[int](), list[Ticket]()
        while len(answered) < len(tickets):
            ticket = rng.choice([each for each in waiting if each.serial not in refused] or waiting)
            if rng.random() < 0.5:
                opened.refuse([ticket], "no")
                refused.add(ticket.serial)
            elif ticket.serial not in refused:
                opened.close([ticket.serial])
                answered.append(ticket)
            told = [each for each, _ in opened.due()]
            opened.close([each.serial for each in told])
            answered += told
            waiting = [each for each in tickets if each not in answered]
        assert sorted(each.serial for each in answered) == [each.serial for each in tickets], seed
        turns = [each.serial for each in answered if each.command == ORDINARY and each.serial in refused]
        assert turns == sorted(turns), seed
