"""The process: start, wiring, settings and shutdown of `atomic`."""

import gc
import sys


def _import_msgspec_lightly() -> None:
    """msgspec takes `typing_extensions` if it is installed, which costs 15 ms of every start (it imports `inspect`).
    From Python 3.11 on the standard `typing` serves it as well. Others may import it later."""
    if "typing_extensions" in sys.modules or "msgspec" in sys.modules:
        return
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]  # None makes an import fail
    collects = gc.isenabled()
    gc.disable()  # loading makes no garbage
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules["typing_extensions"]
        if collects:
            gc.enable()


_import_msgspec_lightly()
