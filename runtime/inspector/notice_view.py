"""One line that says plainly when a view is no longer live, and why.

Pure.
"""

from __future__ import annotations

from runtime.inspector.board import Board
from runtime.inspector.records import Session
from runtime.inspector.texts import Line, clipped, one_line


def session_name(session: Session) -> str:
    """Its name, else the beginning of its id."""
    name = one_line(session.session_name) if isinstance(session.session_name, str) else ""
    return name or one_line(session.session_id)[:13]


def notice(board: Board, pid: int, width: int, again: str = "r") -> Line | None:
    """None while all is live. `pid` is the program's, `again` what has to be pressed for another look."""
    text = notice_text(board, pid, again)
    return clipped(((f" {text}", "warn"),), width) if text is not None else None


def notice_text(board: Board, pid: int, again: str) -> str | None:
    match board.state:
        case "live" | "connecting":
            return None
        case "ended":
            text = f"The program (pid {pid}) has ended."
            if board.session is not None:
                text += " This is how its tasks stood last."
        case "replaced":
            name = session_name(board.successor) if board.successor else "another one"
            text = f"This session was replaced by {name}. {again} shows the tasks of that one."
        case _:
            reason = f": {one_line(board.reason)}" if board.reason else ""
            text = f"The connection is lost{reason}. {again} connects again."
    return text
