"""An inspector as tests need one: a real socket, its records in order, and waits with a deadline."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from types import TracebackType
from typing import Any, Self

Record = dict[str, Any]


class Inspector:
    """Connects at once. `next` and `wait` fail when nothing fitting comes in time; `hello` is the first record."""

    def __init__(self, path: Path, deadline: float = 20.0) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(deadline)
        self.socket.connect(str(path))
        self._lines = self.socket.makefile("rb")
        self._ids = 0
        self.records: list[Record] = []
        self.hello = self.next()

    def next(self) -> Record:
        line = self._lines.readline()
        assert line.endswith(b"\n"), f"the connection ended with {line!r} after {self.records[-3:]}"
        record: Record = json.loads(line)
        self.records.append(record)
        return record

    def wait(self, **wanted: Any) -> Record:
        """The next record with these values, those before it stay in `records`."""
        while True:
            record = self.next()
            if all(record.get(name) == value for name, value in wanted.items()):
                return record

    def send(self, type_: str, **fields: Any) -> Any:
        """The id."""
        self._ids += 1
        fields.setdefault("id", f"v{self._ids}")
        self.socket.sendall(json.dumps({"type": type_, **fields}).encode() + b"\n")
        return fields["id"]

    def request(self, type_: str, **fields: Any) -> Record:
        return self.wait(type="response", id=self.send(type_, **fields))

    def rest(self) -> list[Record]:
        """What still comes until the program ends the connection."""
        lines = self._lines.read().splitlines()
        found = [json.loads(line) for line in lines]
        self.records += found
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._lines.close()
        self.socket.close()
