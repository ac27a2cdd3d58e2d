"""Reports: what a reader and a machine get of the same verdicts."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

from conformance.fault import Fault
from conformance.report import as_json, as_junit, as_text, line
from conformance.verdict import Outcome, Verdict
from tests.conformance.test_verdict import case

FAULT = Fault("a record <is> missing " + "x" * 200, 7, "data.a: 1", "data.a: \x00\ud800", '{"type": "y"}')


def verdict(outcome: Outcome, level: str = "contract", *faults: Fault) -> Verdict:
    one = case()._replace(level=level, name=f"bash/{outcome}")
    reason = faults[0].what if faults else "because" if outcome != "passed" else ""
    return Verdict(one, outcome, reason, faults, 1.25, frozenset(), "a line of stderr\n")


ALL = [
    verdict("passed"),
    verdict("failed", "reference", FAULT, FAULT, FAULT, FAULT),
    verdict("missing"),
    verdict("error", "stricter"),
]


def test_the_text_fits_a_terminal_and_shows_both_sides() -> None:
    text = as_text(ALL, ["x"])
    assert max(map(len, text.splitlines())) <= 80
    assert "FAIL bash/failed (reference)" in text
    assert "awaited  data.a: 1" in text
    assert "and 1 more" in text
    assert "a line of stderr" in text
    assert "  bash/missing: because" in text
    assert "bash/passed" not in text


def test_levels_are_counted_apart() -> None:
    rows = {row.split()[0]: row.split()[1:] for row in as_text(ALL, ["x"]).splitlines()[-4:]}
    assert rows["contract"] == ["1", "0", "1", "0", "2"]
    assert rows["reference"] == ["0", "1", "0", "0", "1"]
    assert rows["all"] == ["1", "1", "1", "1", "4"]


def test_a_verdict_is_one_line() -> None:
    assert line(ALL[1]) == "FAIL   1.2s bash/failed"


def test_json_tells_why_only_where_something_is_wrong() -> None:
    report = json.loads(as_json(ALL, ["x", "--mode", "rpc"]))
    assert report["command"] == ["x", "--mode", "rpc"]
    assert report["counts"]["all"] == {"passed": 1, "failed": 1, "missing": 1, "error": 1}
    assert "reason" not in report["cases"][0]
    assert report["cases"][1]["faults"][0]["awaited"] == "data.a: 1"


def test_junit_is_xml_whatever_the_texts_hold() -> None:
    root = ElementTree.fromstring(as_junit(ALL, ["x"]).encode())
    found = {suite.get("name"): [child.tag for test in suite for child in test] for suite in root}
    assert found == {"contract": ["skipped"], "reference": ["failure"], "stricter": ["error"]}
