"""The examples of docs/client.md are whole programs, and print what the page says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = re.findall(r"```python\n(.*?)```\n+```text\n(.*?)```", (ROOT / "docs" / "client.md").read_text(), re.DOTALL)


def test_every_program_of_the_page_is_run() -> None:
    assert len(EXAMPLES) == (ROOT / "docs" / "client.md").read_text().count("```python") >= 4


@pytest.mark.parametrize(("program", "promised"), EXAMPLES)
def test_an_example_prints_what_the_page_says(program: str, promised: str, atomic: list[str], tmp_path: Path) -> None:
    start = json.dumps(atomic[: atomic.index("--mode")])[1:-1]
    whole = program.replace('["atomic", ', f"[{start}, ")
    path = f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n"
    run = subprocess.run(
        [sys.executable, "-c", path + whole], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (run.stdout, run.stderr) == (promised, "")
