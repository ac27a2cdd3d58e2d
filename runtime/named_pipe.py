"""Named pipes of Windows, as far as inspectors need them: who may open one, whose it is, and both ends of one.

A pipe that is read, written or listened at is opened for overlapped I/O: one handle reads and writes at the same time,
and whoever waits also waits for an `Event`, which any thread may set. Bytes have no borders here. A pipe cannot be
closed for one direction alone.
"""

from __future__ import annotations

import sys

PIECE_BYTES = 64 * 1024
"""No write is longer: all of one is held by the kernel until it has been read."""


class PipeRefused(OSError):
    """The system does not do it, or the pipe is not ours; the text is for people."""


if sys.platform == "win32":
    import _winapi
    import ctypes
    from ctypes import wintypes

    _FIRST_INSTANCE, _OVERLAPPED = 0x80000, 0x40000000
    _REJECT_REMOTE = 0x8
    _IDENTIFY_ONLY = 0x100000 | 0x10000
    _ACCESS_DENIED, _PIPE_BUSY = 5, 231
    _SDDL_REVISION = 1
    _KERNEL_OBJECT, _OWNER = 6, 1
    _TOKEN_QUERY, _TOKEN_USER = 0x8, 1

    _kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
    _advapi32 = ctypes.WinDLL("advapi32", use_last_error=True)
    _kernel32.GetCurrentProcess.restype = wintypes.HANDLE
    _kernel32.CreateEventW.restype = wintypes.HANDLE
    _kernel32.WaitNamedPipeW.argtypes = (wintypes.LPCWSTR, wintypes.DWORD)

    def _refusal(call: str) -> PipeRefused:
        return PipeRefused(f"{call} failed with error {ctypes.get_last_error()}")

    # -- whose it is

    def current_user() -> str:
        """The security identifier of the user of this process. Raises `PipeRefused`."""
        token = wintypes.HANDLE()
        process = wintypes.HANDLE(_kernel32.GetCurrentProcess())
        if not _advapi32.OpenProcessToken(process, _TOKEN_QUERY, ctypes.byref(token)):
            raise _refusal("OpenProcessToken")
        try:
            size = wintypes.DWORD()
            _advapi32.GetTokenInformation(token, _TOKEN_USER, None, 0, ctypes.byref(size))
            user = ctypes.create_string_buffer(max(size.value, ctypes.sizeof(ctypes.c_void_p)))
            if not _advapi32.GetTokenInformation(token, _TOKEN_USER, user, size, ctypes.byref(size)):
                raise _refusal("GetTokenInformation")
            return _text_of(ctypes.c_void_p.from_buffer(user))  # a pointer to the identifier stands first
        finally:
            _kernel32.CloseHandle(token)

    def owner_of(handle: int) -> str:
        """The security identifier of the user who made the pipe at whose other end `handle` is. A pid would tell less:
        it may be another process's by now. Raises `PipeRefused`."""
        owner, descriptor = ctypes.c_void_p(), ctypes.c_void_p()
        error = _advapi32.GetSecurityInfo(
            wintypes.HANDLE(handle),
            _KERNEL_OBJECT,
            _OWNER,
            ctypes.byref(owner),
            None,
            None,
            None,
            ctypes.byref(descriptor),
        )
        if error:
            raise PipeRefused(f"GetSecurityInfo failed with error {error}")
        try:
            return _text_of(owner)
        finally:
            _kernel32.LocalFree(descriptor)

    def _text_of(identifier: ctypes.c_void_p) -> str:
        text = wintypes.LPWSTR()
        if not _advapi32.ConvertSidToStringSidW(identifier, ctypes.byref(text)):
            raise _refusal("ConvertSidToStringSid")
        try:
            return str(text.value)
        finally:
            _kernel32.LocalFree(text)

    # -- the end that was opened

    def has_listener(name: str, patience_ms: int) -> bool:
        """Whether somebody waits at the pipe for a connection; none is made. False at once if there is no such pipe,
        else after `patience_ms`."""
        return bool(_kernel32.WaitNamedPipeW(name, patience_ms))

    def open_client(name: str, user: str) -> int | None:
        """A handle, for overlapped I/O, of the pipe that `user` made; None while all its instances are taken. The
        program at the other end may learn who we are, and can do nothing in our name. Raises `OSError`, `PipeRefused`
        if somebody else made the pipe."""
        access = _winapi.GENERIC_READ | _winapi.GENERIC_WRITE
        try:
            handle = _winapi.CreateFile(name, access, 0, 0, _winapi.OPEN_EXISTING, _OVERLAPPED | _IDENTIFY_ONLY, 0)
        except OSError as error:
            if error.winerror == _PIPE_BUSY:
                return None
            raise
        try:
            if owner_of(handle) != user:
                raise PipeRefused("its pipe was made by another user")
        except OSError:
            _winapi.CloseHandle(handle)
            raise
        return handle

    # -- the end that listens

    class _SecurityAttributes(ctypes.Structure):
        _fields_ = (
            ("size", wintypes.DWORD),
            ("descriptor", ctypes.c_void_p),
            ("is_inherited", wintypes.BOOL),
        )

    class PipeServer:
        """A name of which this process alone makes instances. `descriptor` tells in SDDL who owns it and who may open
        it; nobody may from another machine. Raises `PipeRefused`."""

        def __init__(self, name: str, descriptor: str) -> None:
            self._name = name
            self._made = False
            self._attributes = _SecurityAttributes(ctypes.sizeof(_SecurityAttributes), None, False)
            read = ctypes.c_void_p()  # never freed: the process has one
            if not _advapi32.ConvertStringSecurityDescriptorToSecurityDescriptorW(
                descriptor, _SDDL_REVISION, ctypes.byref(read), None
            ):
                raise _refusal("ConvertStringSecurityDescriptorToSecurityDescriptor")
            self._attributes.descriptor = read

        def instance(self) -> int:
            """A handle of one more instance, opened for overlapped I/O. The first one is made only if there is no pipe
            of this name. Raises `OSError`, `PipeRefused` if it is taken."""
            first = 0 if self._made else _FIRST_INSTANCE
            try:
                handle = _winapi.CreateNamedPipe(
                    self._name,
                    _winapi.PIPE_ACCESS_DUPLEX | _OVERLAPPED | first,
                    _winapi.PIPE_WAIT | _REJECT_REMOTE,  # bytes, in both directions
                    _winapi.PIPE_UNLIMITED_INSTANCES,
                    PIECE_BYTES,
                    PIECE_BYTES,
                    0,
                    ctypes.addressof(self._attributes),
                )
            except OSError as error:
                if first and error.winerror == _ACCESS_DENIED:
                    raise PipeRefused("another process has taken it") from None
                raise
            if first and _instances(handle) != 1:  # Wine 8 does not know the flag
                _winapi.CloseHandle(handle)
                raise PipeRefused("another process has taken it")
            self._made = True
            return handle

    def _instances(handle: int) -> int:
        count = wintypes.DWORD()
        pipe = wintypes.HANDLE(handle)
        if not _kernel32.GetNamedPipeHandleStateW(pipe, None, ctypes.byref(count), None, None, None, 0):
            raise _refusal("GetNamedPipeHandleState")
        return count.value

    # -- waiting

    class Event:
        """Not set at first; stays set once it is. Its handle is closed when nobody has it any more."""

        def __init__(self) -> None:
            self.handle = 0
            self.is_set = False
            self.handle = int(_kernel32.CreateEventW(None, True, False, None) or 0)
            if not self.handle:
                raise _refusal("CreateEvent")

        def set(self) -> None:
            self.is_set = True
            _kernel32.SetEvent(wintypes.HANDLE(self.handle))

        def __del__(self) -> None:
            if self.handle:
                _kernel32.CloseHandle(wintypes.HANDLE(self.handle))

    class PipeEnd:
        """One end of a pipe, by a handle of its own, which is closed when nobody has it any more, at the latest. One
        thread uses it at a time; whoever waits here waits no longer once `over` is set."""

        def __init__(self, handle: int, over: Event) -> None:
            self._handle = handle
            self._over = over

        def shared(self, over: Event) -> PipeEnd:
            """The same end by another handle."""
            process = _winapi.GetCurrentProcess()
            same = _winapi.DUPLICATE_SAME_ACCESS
            return PipeEnd(_winapi.DuplicateHandle(process, self._handle, process, 0, False, same), over)

        def await_client(self) -> bool:
            """Waits until somebody has opened the other end. False if it is over, or who came has left again."""
            try:
                self._finish(_winapi.ConnectNamedPipe(self._handle, overlapped=True))
            except OSError:
                return False
            return not self._over.is_set

        def read(self) -> bytes:
            """Waits for bytes: nothing once it is over or the other end is closed. A write of no bytes is not told."""
            while not self._over.is_set:
                try:
                    reading, _ = _winapi.ReadFile(self._handle, PIECE_BYTES, overlapped=True)
                    if self._finish(reading):
                        return bytes(reading.getbuffer() or b"")
                except OSError:
                    return b""
            return b""

        def write(self, data: bytes) -> None:
            """Waits until the pipe has taken all of it. Raises `OSError` if it is over or the other end is closed."""
            for start in range(0, len(data), PIECE_BYTES):
                piece = data[start : start + PIECE_BYTES]
                writing, _ = _winapi.WriteFile(self._handle, piece, overlapped=True)
                if self._finish(writing) < len(piece):
                    raise PipeRefused("it was closed meanwhile")

        def offer(self, data: bytes) -> None:
            """Writes it if the pipe takes it at once. Raises `OSError` if the other end is closed."""
            writing, _ = _winapi.WriteFile(self._handle, data, overlapped=True)
            writing.cancel()
            writing.GetOverlappedResult(True)

        def close(self) -> None:
            """What the pipe has taken can still be read at the other end. May be repeated."""
            handle, self._handle = self._handle, 0
            if handle:
                _winapi.CloseHandle(handle)

        def __del__(self) -> None:
            self.close()

        def _finish(self, operation: _winapi.Overlapped) -> int:
            """How many bytes were moved. Nothing may let go of an operation before the kernel has."""
            waits = [self._over.handle, operation.event]
            if _winapi.WaitForMultipleObjects(waits, False, _winapi.INFINITE) == _winapi.WAIT_OBJECT_0:
                operation.cancel()
            return operation.GetOverlappedResult(True)[0]
