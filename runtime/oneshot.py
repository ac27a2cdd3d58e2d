"""What the one-shot modes (`--mode json`, `-p`) add to a start: the prompts, and the form of the output.

Source: contract `json-mode.md`; rpc 6; sessions 8.2 and 8.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import UNSET

from actors.oneshot import Prompts
from actors.print_outcome import Outcome, outcome_of
from actors.print_stream import DeltaForm, Form, SnapshotForm, TextForm
from protocol.codec import decode_any, encode
from protocol.entry_head import SessionHeader
from runtime.prompt_files import read_prompt_files

if TYPE_CHECKING:
    from actors.session.file import OpenedSession
    from runtime.cli import Options


class OneShotPlan(NamedTuple):
    """`reads_stdin` is off for a terminal. `last` is what the conversation ended with before."""

    prompts: Prompts
    form: Form
    last: Outcome
    reads_stdin: bool


def plan_one_shot(
    options: Options, session: OpenedSession, cwd: str, *, reads_stdin: bool, resize_images: bool
) -> OneShotPlan:
    """Raises PromptFileError."""
    files = read_prompt_files(options.files, cwd, resize=resize_images)
    earlier = _earlier(session) if session.entries else None
    prompts = Prompts(
        tuple(map(_whole_text, options.messages)),
        _whole_text(files.text),
        files.images,
        earlier,
        tells_errors=options.mode != "json",
    )
    return OneShotPlan(prompts, _form(options, session), earlier or Outcome(), reads_stdin)


def _form(options: Options, session: OpenedSession) -> Form:
    if options.mode != "json":
        return TextForm()
    head = session.header
    header = SessionHeader(
        id=head.id, timestamp=head.timestamp, cwd=head.cwd or "", parent_session=head.parent_session or UNSET
    )
    line = encode(header) + b"\n"
    return DeltaForm(line) if options.json_deltas else SnapshotForm(line)


def _earlier(session: OpenedSession) -> Outcome:
    """The last message on the branch that the session goes on with."""
    from actors.session.context import build_context
    from actors.session.tree import Tree

    tree = Tree(session.entries)
    messages = build_context(tree, tree.leaf_id).messages
    return outcome_of(decode_any(bytes(messages[-1].raw))) if messages else Outcome()


def _whole_text(text: str) -> str:
    """Arguments may hold bytes that are no UTF-8, which Python keeps as lone surrogates."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
