"""docs/schema/: what `atomic schema` prints, as files.

`make schema` (or `python -m tests.house.schema_files`) writes them anew; a test compares them with the types.
"""

from __future__ import annotations

from pathlib import Path

from protocol.schema.documents import NAMES, WHOLE, text
from protocol.schema.typescript import declarations

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "schema"


def files() -> dict[str, str]:
    """Every file of the folder, with what is in it."""
    return {"atomic-rpc.d.ts": declarations(), **{f"{name}.json": text(name) for name in (*NAMES, WHOLE)}}


if __name__ == "__main__":
    for name, content in files().items():
        (FOLDER / name).write_text(content, encoding="utf-8")
