"""Pumps that read and change models.json and auth.json: real files, one report for each job."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from actors.mail import CatalogLate, CatalogLoaded, CredentialRefused
from runtime.catalog_files import PumpedFiles
from tests.held_file import held, needs_leases

ENTRY = {"baseUrl": "http://h", "api": "anthropic-messages", "models": [{"id": "m"}]}
KEY = {"type": "api_key", "key": "s3cret"}


class Bench:
    """The address that pumps report to, on threads of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mail: SimpleQueue[Any] = SimpleQueue()
        self.files = PumpedFiles(self._start, str(folder), lambda: 1.0, scripted=False)

    def _start(self, name: str, work: Callable[[], None]) -> None:
        threading.Thread(target=work, daemon=True).start()

    def tell(self, mail: Any) -> None:
        self.mail.put(mail)

    def next(self) -> Any:
        return self.mail.get(timeout=20)

    def write(self, name: str, content: Any) -> None:
        (self.folder / name).write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")

    def stored(self) -> Any:
        return json.loads((self.folder / "auth.json").read_text("utf-8"))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_both_files_are_read(bench: Bench) -> None:
    bench.write("models.json", {"providers": {"fa": ENTRY}})
    bench.write("auth.json", {"fa": KEY})
    bench.files.load(3, None, bench)
    mail = bench.next()
    assert isinstance(mail, CatalogLoaded)
    assert (mail.job, mail.at) == (3, 1.0)
    assert [model.id for model in mail.files.models if model.provider == "fa"] == ["m"]
    assert mail.files.stored["fa"].key == "s3cret"


def test_a_fault_is_told_with_the_provider_that_it_is_about(bench: Bench) -> None:
    bench.write("models.json", {"providers": {"fa": ENTRY, "bad": {**ENTRY, "models": [{"id": 7}]}}})
    bench.files.load(1, None, bench)
    mail = bench.next()
    ((provider, message),) = mail.errors
    assert provider == "bad" and 'provider "bad"' in message
    assert any(model.provider == "fa" for model in mail.files.models)


@pytest.mark.parametrize("name", ["models.json", "auth.json"])
def test_a_file_that_is_broken_is_told_by_its_name_and_not_taken_for_empty(bench: Bench, name: str) -> None:
    bench.write(name, '{"s3cret": ')
    bench.files.load(1, None, bench)
    mail = bench.next()
    assert [provider for provider, _ in mail.errors] == [name]
    assert "s3cret" not in str(mail.errors)
    assert (mail.files.models is None, mail.files.stored is None) == (name == "models.json", name == "auth.json")


@needs_leases
def test_a_reading_that_hangs_is_late_at_its_deadline_and_ends_when_it_can(bench: Bench) -> None:
    bench.write("models.json", {})
    with held(bench.folder / "models.json"):
        bench.files.load(1, 1, bench)
        assert bench.next() == CatalogLate(1)
    assert isinstance(bench.next(), CatalogLoaded)


def test_a_saved_credential_is_in_the_file_before_the_report_and_others_stay(bench: Bench) -> None:
    other = {"type": "oauth", "access": "x", "made": {"by": "others"}}
    bench.write("auth.json", {"other": other})
    bench.files.save(1, "p", KEY, bench)
    mail = bench.next()
    assert mail.files.stored["p"].key == "s3cret"
    assert bench.stored() == {"other": other, "p": KEY}
    assert (bench.folder / "auth.json").stat().st_mode & 0o777 == 0o600


def test_a_removed_credential_is_gone_and_removing_none_is_fine(bench: Bench) -> None:
    bench.files.remove(1, "p", bench)
    assert isinstance(bench.next(), CatalogLoaded)
    assert not (bench.folder / "auth.json").exists()
    bench.write("auth.json", {"p": KEY, "q": KEY})
    bench.files.remove(2, "p", bench)
    assert isinstance(bench.next(), CatalogLoaded)
    assert bench.stored() == {"q": KEY}


def test_a_malformed_file_is_refused_and_left_as_it_is(bench: Bench) -> None:
    bench.write("auth.json", '{"p": "s3cret",}')
    bench.files.save(1, "p", KEY, bench)
    mail = bench.next()
    assert isinstance(mail, CredentialRefused)
    assert mail.error.startswith("Failed to parse auth.json") and not mail.committed
    assert (bench.folder / "auth.json").read_text("utf-8") == '{"p": "s3cret",}'


def test_a_file_that_cannot_be_read_back_after_the_write_is_committed(bench: Bench) -> None:
    bench.write("auth.json", {"p": KEY})
    bench.files._stored = lambda errors: None  # type: ignore[method-assign]  # as if it broke right after the write
    bench.files.remove(1, "p", bench)
    assert bench.next() == CredentialRefused(1, "", committed=True)
    assert bench.stored() == {}
