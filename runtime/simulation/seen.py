"""What the client of a course saw, and what the invariants say of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from actors.base import Down
from protocol.codec import Rejected, encode, read_command
from protocol.commands import COMMAND_NAMES, ExtensionUiResponse, command_name
from runtime.simulation.house import House

Key = tuple[bytes, str | None]

_PARTICULARS = re.compile(r"\[[^\]]*\]|'[^']*'|\"[^\"]*\"|\b[0-9a-f]{8,}\b|\d+")


class Violation(Struct, frozen=True):
    """`rule` names the check, `text` says what did not hold."""

    rule: str
    text: str

    @property
    def kind(self) -> str:
        """The same for all violations that differ in numbers and names alone."""
        return f"{self.rule}: {_PARTICULARS.sub('', self.text)}"

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"


class Seen:
    """What the client saw: whole records in order, each with the number of journal lines written before it left."""

    def __init__(self, house: House, is_over: bool) -> None:
        self.house = house
        self.is_over = is_over
        self.log: list[dict[str, Any]] = [msgspec.json.decode(line) for _, line in house.disk.log]
        """The entries that were written, in order."""
        self._keys = [expected_key(line) for line in house.client.sent]
        self.records: list[tuple[dict[str, Any], int]] = []
        self.broken_lines: list[bytes] = []
        for burst, journaled in house.sink.bursts:
            for line in burst.removesuffix(b"\n").split(b"\n"):
                self._read(line, journaled)
        self.struck = house.fault.struck if house.fault else None
        self.crashed = self.struck is not None
        self.is_fatal = any(receiver == "root" and type(mail) is Down for _, receiver, mail in house.scheduler.trace)

    def _read(self, line: bytes, journaled: int) -> None:
        try:
            record = msgspec.json.decode(line)
        except msgspec.DecodeError:
            record = None
        if isinstance(record, dict) and isinstance(record.get("type"), str):
            self.records.append((record, journaled))
        else:
            self.broken_lines.append(line)

    @property
    def responses(self) -> Iterator[dict[str, Any]]:
        return (record for record, _ in self.records if record["type"] == "response")

    # -- commands and their responses: a key is an id, as JSON, and the name that is echoed

    @staticmethod
    def key(response: dict[str, Any]) -> Key:
        return (encode(response["id"]) if "id" in response else b"", response.get("command"))

    @staticmethod
    def key_of(command: dict[str, Any]) -> Key:
        return (encode(command["id"]) if "id" in command else b"", command["type"])

    def commands(self, lines: int | None = None) -> list[Key]:
        """What the client sent, in its first `lines`, and is answered, in the order of the wire."""
        return [key for key in self._keys[:lines] if key is not None]

    def sent_commands(self) -> Iterator[dict[str, Any]]:
        """Those that are whole, decoded."""
        for line, key in zip(self.house.client.sent, self._keys, strict=True):
            if key is not None and key[1] in COMMAND_NAMES and not isinstance(read_command(line), Rejected):
                yield msgspec.json.decode(line)


def expected_key(line: bytes, answers_all: bool = False) -> Key | None:
    """The key of the response to a line. On stdin one kind of line has none, a visitor answers all."""
    command = read_command(line)
    if isinstance(command, Rejected):
        return command.id, command.command
    if isinstance(command, ExtensionUiResponse):
        return (b"", command_name(command)) if answers_all else None
    return bytes(command.id), command_name(command)
