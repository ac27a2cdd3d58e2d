"""The page about pi says what its JSON says: the table, what differs, and how many features are missing."""

from __future__ import annotations

import json
import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "conformance"
PAGE = (FOLDER / "pi-1.6.0.md").read_text(encoding="utf-8")
REPORT = json.loads((FOLDER / "pi-1.6.0.json").read_text(encoding="utf-8"))


def test_the_table_has_the_counts_of_the_report() -> None:
    rows = dict(re.findall(r"^\| (contract|reference|stricter) \| (.*) \|$", PAGE, re.MULTILINE))
    for level, row in rows.items():
        counts = REPORT["counts"][level]
        told = [counts[outcome] for outcome in ("passed", "failed", "missing")]
        assert [int(cell) for cell in row.split("|")] == [*told, sum(counts.values())]
    assert set(rows) == {"contract", "reference", "stricter"}


def test_every_case_that_failed_is_named_and_no_other() -> None:
    failed = {case["name"] for case in REPORT["cases"] if case["outcome"] == "failed"}
    named = set(re.findall(r"`([a-z]+/[a-z-]+)`", PAGE))
    assert failed == named


def test_the_missing_features_add_up() -> None:
    missing = sum(case["outcome"] == "missing" for case in REPORT["cases"])
    assert missing == sum(int(count) for count in re.findall(r"^\| (\d+) \| ", PAGE, re.MULTILINE))
    assert f"{missing} cases ask for something" in PAGE
