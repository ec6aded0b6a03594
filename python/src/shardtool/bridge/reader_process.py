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
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, TypeVar

from ..errors import ReaderError, StaleIteratorError, error_of_reader, how_it_ended, warn
from .frames import Frame, FrameDecoder, OutgoingFrame, encode_frame
from .node import find_node, find_program, why_not
from .slot_file import SlotMemory, create_slot_file

#: Interval in seconds at which a silent reader is checked. If another process holds its end of the pipe open, its end
#: cannot be detected in another way.
_LOOK_EVERY_MS = 1000
#: Time in seconds that it may take to end by itself.
_PATIENCE_SECONDS = 2.0
_PIECE_BYTES = 1 << 20
_CLOSED = "The loader was closed while something was asked of it: begin a new loop."
_KEPT_STDERR_BYTES = 8192
_SHOWN_STDERR_LINES = 8

_Result = TypeVar("_Result")

#: Readers that this process has started, or inherited.
_STARTED: weakref.WeakSet[ReaderProcess] = weakref.WeakSet()


def close_inherited() -> None:
    """In a forked process: closes its copies of the pipes to readers. A reader ends when no process has its input
    open."""
    for reader in list(_STARTED):
        reader._end()


class ReaderProcess:
    """Starts the reader, which ends with :meth:`close`, when this object is collected, and with this process.

    Threads may share it: each request is answered before the next one is sent. An exception from a signal handler
    (KeyboardInterrupt) ends the wait for an answer. After that, the reader accepts further requests.
    """

    def __init__(self, program: Optional[str] = None, closed: str = _CLOSED, workers: Optional[int] = None) -> None:
        """``program``: another program with the same interface as the reader. ``closed``: the error of a request during
        which the reader was closed. ``workers``: number of decode workers that the reader starts at once, for a loader;
        0 stands for one per core."""
        if sys.platform == "win32":
            raise ReaderError(
                "Loaders, datasets and writers do not work on Windows: use WSL, or only the command line tool."
            )
        self._closed = closed
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
        # The kernel ends the reader with the thread that started it, so that thread must run as long as the process.
        if threading.current_thread() is threading.main_thread():
            command.append("--kill-with-parent")
        if workers is not None:
            command += ["--workers", str(workers)]
        try:
            with _interrupt_later():
                wake = self._start(command)
            self._set_up(wake)
        except BaseException:
            # After Ctrl-C, for example, the traceback may keep this object alive.
            if hasattr(self, "_finalizer"):
                self._end()
            raise

    def _start(self, command: List[str]) -> int:
        """Starts the process, and arranges its end. Returns the end of a pipe through which :meth:`close` notifies a
        waiting thread."""
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
        # One thread writes to it when it ends the reader while another thread waits for an answer.
        wake, self._wake = os.pipe()
        descriptors = (self._slot_file, wake, self._wake)
        self._finalizer = weakref.finalize(self, _end, self._process, descriptors, os.getpid())
        _STARTED.add(self)
        return wake

    def _set_up(self, wake: int) -> None:
        process = self._process
        self._decoder = FrameDecoder()
        self._outgoing: Optional[OutgoingFrame] = None
        self._stderr = bytearray()
        self._requests = 0
        self._answered = False
        self._memory: Optional[SlotMemory] = None
        #: Locks for ending the reader and for using the pipes. Threads that end the reader take both, in this order.
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
    def slot_file(self) -> int:
        """The descriptor of the file with the slots."""
        return self._slot_file

    @property
    def is_closed(self) -> bool:
        return not self._finalizer.alive

    def request(self, kind: str, parts: Sequence[bytes] = (), /, **content: Any) -> Frame:
        """Sends a request, followed by bytes, and waits for its answer.

        Raises the reader's error, :class:`ReaderError` if it has ended, and :class:`StaleIteratorError` if another
        thread, or a signal's handler, has closed it. A request that was interrupted may still have been carried out:
        its answer is dropped when the next one is awaited.
        """
        frame = self._alone(lambda: self._answer(self._send(kind, parts, content)))
        for message in frame.header.get("warnings", ()):
            warn(message)
        if frame.header["kind"] == "error":
            raise error_of_reader(frame.header)
        return frame

    def notify(self, kind: str, /, **content: Any) -> None:
        """Sends a request that has no answer."""
        self._alone(lambda: self._send(kind, (), content))

    def ask(self, kind: str, **content: Any) -> Dict[str, Any]:
        """The header of the answer to a request."""
        return self.request(kind, **content).header

    def _send(self, kind: str, parts: Sequence[bytes], content: Dict[str, Any]) -> int:
        number = self._requests + 1
        frame = encode_frame({"kind": kind, "request": number, **content}, parts)
        # The rest of a request that was interrupted.
        self._flush()
        self._requests = number
        self._outgoing = OutgoingFrame(frame)
        self._flush()
        return number

    def _flush(self) -> None:
        try:
            while self._outgoing is not None:
                self._check()
                if self._outgoing.write(self._stdin):
                    self._outgoing = None
        except BrokenPipeError:
            self._check()
            raise self._death() from None

    def _answer(self, request: int) -> Frame:
        while True:
            self._check()
            frame = self._decoder.take()
            if frame is None:
                self._read_piece()
            elif frame.header["request"] >= request:
                self._check_request(frame, request)
                return frame

    def _check_request(self, frame: Frame, request: int) -> None:
        self._answered = True
        if frame.header["request"] != request:
            self._end()
            raise ReaderError(f"The reader answered request {frame.header['request']} instead of request {request}.")

    def memory(self) -> SlotMemory:
        """The slot file, mapped up to its current length. Raises :class:`StaleIteratorError` if the reader was
        closed."""
        return self._alone(self._mapped)

    def _mapped(self) -> SlotMemory:
        self._check()
        if self._memory is None or len(self._memory) < os.fstat(self._slot_file).st_size:
            self._memory = SlotMemory(self._slot_file)
        return self._memory

    def close(self) -> None:
        """Ends the reader, even while another thread waits for it. Arrays over its slots stay valid."""
        with self._ending:
            if self.is_closed:
                return
            self._is_ending = True
            os.write(self._wake, b"\0")
            if self._user == threading.get_ident():
                # A signal handler. The code that it interrupted uses the pipes, and ends the reader when it resumes.
                self._process.kill()
                return
            if not self._in_use.acquire(timeout=_PATIENCE_SECONDS):
                # The reader does not read a request. Killing it breaks the pipe and ends that call.
                self._process.kill()
                self._in_use.acquire()
            try:
                self._end()
            finally:
                self._in_use.release()

    def _alone(self, work: Callable[[], _Result]) -> _Result:
        """Runs a function that uses the pipes. Other threads wait for it, and :meth:`close` in another thread ends
        it."""
        with self._in_use:
            if self._user == threading.get_ident():
                raise ReaderError(
                    "A signal's handler cannot ask the reader for anything while the code that it interrupted does: "
                    "set a flag in the handler, and ask when it has returned."
                )
            try:
                self._user = threading.get_ident()
                return work()
            finally:
                self._user = None
                if self._is_ending:
                    self._end()

    def _end(self) -> None:
        self._finalizer()

    def _check(self) -> None:
        """Raises an error if the reader was closed in the meantime."""
        if self._is_ending or self.is_closed:
            raise StaleIteratorError(self._closed)

    def _read_piece(self) -> None:
        """Waits for output. It also reads and keeps the reader's standard error, so that its pipe never stays full."""
        ready = self._poll.poll(_LOOK_EVERY_MS)
        self._check()
        if not ready and self._process.poll() is not None:
            raise self._death()
        for descriptor, _ in ready:
            if descriptor == self._stdout:
                if not self._decoder.read(descriptor, _PIECE_BYTES):
                    raise self._death()
            elif piece := os.read(descriptor, _PIECE_BYTES):
                self._keep_stderr(piece)
            else:
                self._poll.unregister(descriptor)

    def _keep_stderr(self, piece: bytes) -> None:
        self._stderr += piece
        del self._stderr[:-_KEPT_STDERR_BYTES]

    def _death(self) -> ReaderError:
        """The error that tells why the reader ended, with the end of its standard error. Closes the pipes."""
        try:
            self._process.wait(_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._read_last_words()
        self._end()
        how = how_it_ended(self._process.returncode)
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


@contextlib.contextmanager
def _interrupt_later() -> Iterator[None]:
    """Delays Ctrl-C to the end of the block. Otherwise a process could be started and never ended."""
    handler = signal.getsignal(signal.SIGINT)
    # Signal handlers run in the main thread, and only that thread may set them.
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
    """Closes the pipes of this process to the reader. A forked process closes its copies and does not end the
    reader."""
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
