"""The TypeScript declarations say what the schema says, and a strict compiler takes them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from protocol.schema.documents import WHOLE, document
from protocol.schema.typescript import declarations

COMPILER = "typescript@5.9.3"
CLIENT = Path(__file__).with_name("client.ts")


@pytest.fixture(scope="module")
def written() -> str:
    return declarations()


def declaration(text: str, name: str) -> str:
    """One declaration with its comment."""
    return next(part for part in text.split("\n\n") if re.search(rf"^export \w+ {name}\b", part, re.MULTILINE))


def test_every_definition_is_declared_once(written: str) -> None:
    names = re.findall(r"^export (?:interface|type) (\w+)", written, re.MULTILINE)
    assert sorted(names) == sorted([*document(WHOLE)["$defs"], "Commands", "Responses", "Events"])


def test_fields_are_optional_or_null_as_the_schema_says(written: str) -> None:
    assert declaration(written, "BashResult").endswith(
        """export interface BashResult {
  output: string;
  cancelled: boolean;
  truncated: boolean;
  exitCode?: number;
  fullOutputPath?: string | null;
}"""
    )
    assert "  images?: ImageContentInput[] | null;" in declaration(written, "PromptCommand")
    assert "  thinkingLevelMap?: Record<string, string | null>;" in declaration(written, "Model")
    assert "  content: string | UserContent[];" in declaration(written, "UserMessage")


def test_titles_and_descriptions_are_comments(written: str) -> None:
    assert declaration(written, "AbortCommand").startswith(
        "/**\n * Command abort.\n * End the run, the wait for a retry included.\n */\n"
    )


def test_an_entry_of_an_unknown_type_does_not_spoil_the_union(written: str) -> None:
    assert "MessageEntry" in declaration(written, "Entry")
    assert "OtherEntry" not in declaration(written, "Entry")


def test_the_tables_lead_from_a_command_to_its_response(written: str) -> None:
    assert "  get_state: GetStateCommand;" in declaration(written, "Commands")
    assert "  get_state: GetStateResponse;" in declaration(written, "Responses")
    assert "  agent_settled: AgentSettledEvent;" in declaration(written, "Events")


# ---- the compiler ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def compiler() -> Path:
    """tsc, installed once beside the tools that the tests run with. It needs the npm registry, then never again."""
    folder = Path(sys.prefix) / COMPILER.replace("@", "-")
    tsc = folder / "node_modules" / "typescript" / "bin" / "tsc"
    with FileLock(f"{folder}.lock"):
        if not tsc.exists():
            folder.mkdir(exist_ok=True)
            (folder / "package.json").write_text("{}")
            options = ["--silent", "--no-fund", "--no-audit", "--ignore-scripts"]
            run = subprocess.run(
                ["npm", "install", *options, COMPILER], cwd=folder, capture_output=True, text=True, check=False
            )
            assert run.returncode == 0, f"npm could not install {COMPILER}: {run.stderr[-400:]}"
    return tsc


@pytest.mark.timeout(120)  # the first time it is installed
def test_a_client_that_tells_records_apart_compiles(
    needs: Callable[..., None], request: pytest.FixtureRequest, written: str, tmp_path: Path
) -> None:
    """What the client must not be allowed to do stands in it after `@ts-expect-error`."""
    needs("node", "npm")
    tsc = request.getfixturevalue("compiler")
    (tmp_path / "atomic-rpc.d.ts").write_text(written, encoding="utf-8")
    shutil.copy(CLIENT, tmp_path)
    options = ["--strict", "--noEmit", "--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler"]
    command = ["node", str(tsc), *options, "--pretty", "false", "client.ts", "atomic-rpc.d.ts"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
