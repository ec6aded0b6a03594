"""The reader as a child process: its start, its end, and requests to it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import weakref
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from .errors import ReaderError, ShardtoolError, StaleIteratorError, error_of_reader, warn
from .frames import Frame, FrameDecoder, encode_frame
from .node import find_node, find_program, why_not
from .slot_file import SlotMemory, create_slot_file

#: How often a silent reader is looked at: where another process holds its end of the pipe open, nothing else tells.
_LOOK_EVERY_MS = 1000
#: So long it may take to end by itself.
_PATIENCE_SECONDS = 2.0
_PIECE_BYTES = 1 << 20
_KEPT_STDERR_BYTES = 8192
_SHOWN_STDERR_LINES = 8


class ReaderProcess:
    """Starts the reader, which ends with :meth:`close`, when this object is collected, and with this process."""

    def __init__(self, program: Optional[str] = None) -> None:
        """``program``: another one that serves as the reader does."""
        if sys.platform == "win32":
            raise ReaderError(
                "The reader shares memory with Python in a way that Windows does not have: use WSL, or the "
                "command line tool."
            )
        self._node = find_node()
        self._slot_file = create_slot_file()
        command = [
            self._node,
            program or find_program("reader"),
            "--parent",
            str(os.getpid()),
            "--slot-file",
            str(self._slot_file),
        ]
        # The kernel would end it with the thread that starts it: which must be one that lives as long as the process.
        if threading.current_thread() is threading.main_thread():
            command.append("--kill-with-parent")
        try:
            with _interrupt_later():
                wake = self._start(command)
            self._set_up(wake)
        except BaseException:
            # Ctrl-C, say: whoever hears of it may keep this object with the traceback.
            if hasattr(self, "_finalizer"):
                self._end()
            raise

    def _start(self, command: List[str]) -> int:
        """Starts the process, and says who ends it. Returns the end of a pipe that tells of :meth:`close`."""
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                pass_fds=(self._slot_file,),
            )
        except OSError as error:
            os.close(self._slot_file)
            raise ReaderError(f"The reader cannot start ({error}).{why_not(self._node)}") from error
        # Written to where one thread ends the reader while another waits for it.
        wake, self._wake = os.pipe()
        descriptors = (self._slot_file, wake, self._wake)
        self._finalizer = weakref.finalize(self, _end, self._process, descriptors, os.getpid())
        return wake

    def _set_up(self, wake: int) -> None:
        process = self._process
        self._decoder = FrameDecoder()
        self._stderr = bytearray()
        self._requests = 0
        self._answered = False
        self._memory: Optional[SlotMemory] = None
        #: Held while the pipes are used, and by whoever ends the reader: taken in this order, the first one by threads.
        self._ending, self._in_use = threading.RLock(), threading.RLock()
        self._is_ending = False
        #: The thread that uses the pipes.
        self._user: Optional[int] = None
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self._stdin, self._stdout = process.stdin.fileno(), process.stdout.fileno()
        self._poll = select.poll()
        self._poll.register(self._stdout, select.POLLIN)
        self._poll.register(process.stderr.fileno(), select.POLLIN)
        self._poll.register(wake, select.POLLIN)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_closed(self) -> bool:
        return not self._finalizer.alive

    def send(self, kind: str, parts: Sequence[bytes] = (), /, **content: Any) -> int:
        """Sends a request, with bytes behind it, and returns its number for :meth:`receive`."""
        frame = encode_frame({"kind": kind, "request": self._requests + 1, **content}, parts)
        self._requests += 1
        with self._using():
            try:
                rest = memoryview(frame)
                while rest:
                    self._check()
                    rest = rest[os.write(self._stdin, rest) :]
            except ShardtoolError:
                raise
            except BrokenPipeError:
                self._check()
                raise self._death() from None
            except BaseException:
                self._end()
                raise
        return self._requests

    def receive(self, request: int) -> Frame:
        """Waits for the answer to a request.

        Raises what the reader says went wrong, and :class:`ReaderError` where it has ended. Where anything else ends
        the wait (Ctrl-C, say), part of an answer may be lost: then the reader is ended, too.
        :class:`StaleIteratorError`: another thread, or a signal's handler, has closed it.
        """
        with self._using():
            try:
                frame = None
                while frame is None:
                    self._check()
                    frame = self._decoder.take()
                    if frame is None:
                        self._read_piece()
                self._check_request(frame, request)
            except ShardtoolError:
                raise
            except BaseException:
                self._end()
                raise
        for message in frame.header.get("warnings", ()):
            warn(message)
        if frame.header["kind"] == "error":
            raise error_of_reader(frame.header)
        return frame

    def ask(self, kind: str, **content: Any) -> Dict[str, Any]:
        return self.receive(self.send(kind, **content)).header

    def _check_request(self, frame: Frame, request: int) -> None:
        self._answered = True
        if frame.header["request"] != request:
            self._end()
            raise ReaderError(f"The reader answered request {frame.header['request']} where {request} was asked.")

    def memory(self) -> SlotMemory:
        """The slot file, mapped as far as the reader has made it. :class:`StaleIteratorError`: it was closed."""
        with self._using():
            self._check()
            if self._memory is None or len(self._memory) < os.fstat(self._slot_file).st_size:
                self._memory = SlotMemory(self._slot_file)
            return self._memory

    def close(self) -> None:
        """Ends the reader, also while another thread waits for it. Arrays over its slots stay as they are."""
        with self._ending:
            if self.is_closed:
                return
            self._is_ending = True
            os.write(self._wake, b"\0")
            if self._user == threading.get_ident():
                # A signal's handler: what it interrupted is using the pipes, and ends the reader as soon as it goes on.
                self._process.kill()
                return
            if not self._in_use.acquire(timeout=_PATIENCE_SECONDS):
                # A request that nobody reads: the pipe breaks where the reader ends.
                self._process.kill()
                self._in_use.acquire()
            try:
                self._end()
            finally:
                self._in_use.release()

    @contextlib.contextmanager
    def _using(self) -> Iterator[None]:
        with self._in_use:
            self._user = threading.get_ident()
            try:
                yield
            finally:
                self._user = None
                if self._is_ending:
                    self._end()

    def _end(self) -> None:
        self._finalizer()

    def _check(self) -> None:
        """Raises where the reader was closed meanwhile."""
        if self._is_ending or self.is_closed:
            raise StaleIteratorError("The loader was closed while something was asked of it: begin a new loop.")

    def _read_piece(self) -> None:
        """Waits for output. What the reader says on its standard error is kept, and never fills its pipe for long."""
        ready = self._poll.poll(_LOOK_EVERY_MS)
        self._check()
        if not ready and self._process.poll() is not None:
            raise self._death()
        for descriptor, _ in ready:
            piece = os.read(descriptor, _PIECE_BYTES)
            if descriptor == self._stdout:
                if not piece:
                    raise self._death()
                self._decoder.push(piece)
            elif piece:
                self._keep_stderr(piece)
            else:
                self._poll.unregister(descriptor)

    def _keep_stderr(self, piece: bytes) -> None:
        self._stderr += piece
        del self._stderr[:-_KEPT_STDERR_BYTES]

    def _death(self) -> ReaderError:
        """Why the reader ended, with its last words. What is left of it is closed."""
        try:
            self._process.wait(_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._read_last_words()
        self._end()
        how = _how_it_ended(self._process.returncode)
        lines = self._stderr.decode(errors="replace").strip().splitlines()[-_SHOWN_STDERR_LINES:]
        said = " Its last lines were:\n" + "\n".join(lines) if lines else " It said nothing."
        hint = "" if self._answered else why_not(self._node)
        return ReaderError(f"The reader process {self.pid} {how}.{hint}{said}")

    def _read_last_words(self) -> None:
        assert self._process.stderr is not None
        descriptor = self._process.stderr.fileno()
        os.set_blocking(descriptor, False)
        try:
            for piece in iter(lambda: os.read(descriptor, _PIECE_BYTES), b""):
                self._keep_stderr(piece)
        except BlockingIOError:
            pass


def _how_it_ended(code: Optional[int]) -> str:
    if code is None or code >= 0:
        return f"ended with exit status {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = " (the kernel does that to processes when memory is short)" if -code == signal.SIGKILL else ""
    return f"was ended by {name}{hint}"


@contextlib.contextmanager
def _interrupt_later() -> Iterator[None]:
    """Ctrl-C is heard behind the block: in it, a process could be started and nobody know of it."""
    handler = signal.getsignal(signal.SIGINT)
    # Handlers run in the main thread alone, and nobody else may set them.
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    came = []
    signal.signal(signal.SIGINT, lambda _number, frame: came.append(frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if came:
        handler(signal.SIGINT, came[-1])


def _end(process: subprocess.Popen[bytes], descriptors: Tuple[int, ...], owner: int) -> None:
    """Closes what this process has of the reader. A forked process closes its copies and leaves the reader alone."""
    for descriptor in descriptors:
        os.close(descriptor)
    for pipe in (process.stdin, process.stdout, process.stderr):
        assert pipe is not None
        with contextlib.suppress(OSError):
            pipe.close()
    if os.getpid() != owner:
        return
    try:
        process.wait(_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
