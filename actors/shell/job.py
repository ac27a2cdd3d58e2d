"""Job objects of Windows: whoever is born in one belongs to it, and all of it can be ended at once.

A command is started asleep, put into a job of its own and only then woken, so that nothing that it starts can get away;
when the last handle of the job is closed, which the end of our process does too, the system ends what is left in it.
Source: `tasks.md` 6.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from subprocess import Popen

CREATE_SUSPENDED = 0x4
REFUSED_S = 3
"""So long the end of a command is waited for that could not be put into its job."""


class JobRefused(OSError):
    """The system does not do it; the text names the call and the number of the error."""


if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    _KILL_ON_JOB_CLOSE = 0x2000
    _EXTENDED_LIMITS, _PROCESS_IDS = 9, 3
    _MORE_DATA = 234
    _PROCESS_SET_QUOTA, _PROCESS_TERMINATE = 0x100, 0x1
    _ROOM = 64

    class _BasicLimits(ctypes.Structure):
        _fields_ = (
            ("per_process_time", ctypes.c_int64),
            ("per_job_time", ctypes.c_int64),
            ("flags", wintypes.DWORD),
            ("minimum_working_set", ctypes.c_size_t),
            ("maximum_working_set", ctypes.c_size_t),
            ("active_processes", wintypes.DWORD),
            ("affinity", ctypes.c_size_t),
            ("priority_class", wintypes.DWORD),
            ("scheduling_class", wintypes.DWORD),
        )

    class _Limits(ctypes.Structure):
        _fields_ = (
            ("basic", _BasicLimits),
            ("io", ctypes.c_uint64 * 6),
            ("memory", ctypes.c_size_t * 4),
        )

    class JobObject:
        """A job, empty at first. Nobody in it can leave it. Any thread may call. Raises `JobRefused`."""

        def __init__(self) -> None:
            self._api = ctypes.WinDLL("kernel32", use_last_error=True)
            for name in ("CreateJobObjectW", "OpenProcess"):
                getattr(self._api, name).restype = wintypes.HANDLE
            handle = self._api.CreateJobObjectW(None, None)
            self._handle = wintypes.HANDLE(handle)
            if not handle:
                raise self._refusal("CreateJobObject")
            limits = _Limits()
            limits.basic.flags = _KILL_ON_JOB_CLOSE
            size = wintypes.DWORD(ctypes.sizeof(limits))
            if not self._api.SetInformationJobObject(self._handle, _EXTENDED_LIMITS, ctypes.byref(limits), size):
                refusal = self._refusal("SetInformationJobObject")
                self.close()
                raise refusal

        def take(self, process: int) -> None:
            """Puts in the process with this handle."""
            if not self._api.AssignProcessToJobObject(self._handle, wintypes.HANDLE(process)):
                raise self._refusal("AssignProcessToJobObject")

        def take_pid(self, pid: int) -> None:
            """Puts in a process that runs already; what it has started before stays outside."""
            access = wintypes.DWORD(_PROCESS_SET_QUOTA | _PROCESS_TERMINATE)
            process = self._api.OpenProcess(access, False, wintypes.DWORD(pid))
            if not process:
                raise self._refusal("OpenProcess")
            try:
                self.take(process)
            finally:
                self._api.CloseHandle(wintypes.HANDLE(process))

        def members(self) -> list[int]:
            """The pids of all that still run in it; none when it is closed."""
            room = _ROOM
            while self._handle:
                found = (ctypes.c_size_t * (room + 1))()  # two numbers of 32 bits stand before the first pid
                size = wintypes.DWORD(ctypes.sizeof(found))
                done = self._api.QueryInformationJobObject(self._handle, _PROCESS_IDS, ctypes.byref(found), size, None)
                if done:
                    count = found[0] >> 32 if ctypes.sizeof(ctypes.c_size_t) == 8 else found[1]
                    return [int(pid) for pid in found[1 : count + 1]]
                if ctypes.get_last_error() != _MORE_DATA:
                    return []
                room *= 4
            return []

        def terminate(self) -> None:
            """Ends all of it, with exit code 1, and waits for nobody."""
            if self._handle:
                self._api.TerminateJobObject(self._handle, 1)

        def close(self) -> None:
            """Ends what is left in it. May be repeated."""
            handle, self._handle = self._handle, wintypes.HANDLE(None)
            if handle:
                self._api.CloseHandle(handle)

        def _refusal(self, call: str) -> JobRefused:
            return JobRefused(f"{call} failed with error {ctypes.get_last_error()}")

    def enclose(popen: Popen[bytes]) -> JobObject:
        """Puts a command that was started asleep into a job, and wakes it. If that fails, it has run nothing and is
        gone. Raises `JobRefused`."""
        import psutil

        job = JobObject()
        try:
            job.take(int(popen._handle))  # type: ignore[attr-defined]
            psutil.Process(popen.pid).resume()
        except (JobRefused, psutil.Error) as error:
            job.close()
            popen.kill()
            popen.wait(REFUSED_S)
            raise JobRefused(str(error)) from None
        return job
