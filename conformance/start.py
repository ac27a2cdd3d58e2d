"""How the command begins: a Ctrl-C while its modules are imported ends it without a word.

Nothing is made before they are, so there is nothing to tidy away. Imports next to nothing itself.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def main() -> int:
    """The exit code of `atomic-conformance`."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # ignored, under nohup or behind &
        return _imported()()
    signal.signal(signal.SIGINT, _leave)
    run = _imported()
    try:
        signal.signal(signal.SIGINT, before)
        return run()
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    finally:
        signal.signal(signal.SIGINT, _leave)


def _imported() -> Callable[[], int]:
    from conformance.cli import main as run

    return run


def _leave(number: int, frame: Any) -> None:
    os._exit(128 + number)
