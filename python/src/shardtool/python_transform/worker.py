"""A worker process: calls the user's function for the rows of a job."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import pickle
import select
import signal
import socket
import sys
import time
import traceback
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

from .function import VARYING, Function, Part, ResultError, parts_of, to_array
from .messages import Incoming, Outgoing
from .output_memory import CELL_NUMBERS, cell_offset, place_parts

#: How often a waiting worker checks that its parent still runs.
_LOOK_EVERY_MS = 1000
_SHOWN_TRACEBACK_CHARACTERS = 4000
_PR_SET_PDEATHSIG = 1

#: By name, the offset and shape of uint8 arrays in the reader's slots.
Places = Dict[str, Tuple[int, Tuple[int, ...]]]


class Job(NamedTuple):
    """Some rows of one batch, for a worker."""

    number: int
    #: Number of its loop. Workers skip the jobs of earlier loops.
    loop: int
    rows: Tuple[int, ...]
    image: Tuple[int, Tuple[int, ...]]
    masks: Places
    extra_images: Places
    #: For each of its rows: the seed, and the arguments of the function other than the image.
    seeds: Tuple[int, ...]
    more: Tuple[Dict[str, Any], ...]
    #: Number of rows of the whole batch, its offset in the output memory, and the arrays of a result. With None for
    #: the arrays, the worker finds out what they are and writes nothing.
    size: int
    output: int
    parts: Optional[Tuple[Part, ...]]


class Failure(NamedTuple):
    row: int
    #: What went wrong, as a clause; and the traceback, or an empty string.
    reason: str
    traceback: str
    #: The function is wrong, not the sample.
    is_fatal: bool


class Done(NamedTuple):
    """The answer to a job, or to some of its rows."""

    number: int
    rows: Tuple[int, ...]
    failures: Tuple[Failure, ...]
    #: By row, the results whose length varies.
    varying: Dict[int, Dict[str, NDArray[Any]]]
    #: The arrays of a result, if the job did not have them.
    parts: Optional[Tuple[Part, ...]]


class How(NamedTuple):
    """How a worker runs."""

    number: int
    #: Process ID of the parent.
    parent: int
    #: The parent's connections to its workers. A forked worker has copies, which it closes.
    inherited: Tuple[socket.socket, ...]
    #: The kernel kills the worker when the thread that started it ends.
    ends_with_parent: bool
    imports_torch: bool


def work(function: Function, connection: socket.socket, how: How) -> None:
    """The main function of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Not the handler of the program, which a forked worker inherits: it may save a checkpoint, for example.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for inherited in how.inherited:
        inherited.close()
    if how.inherited:
        _close_readers()
    if how.ends_with_parent and sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    _use_one_thread(how.imports_torch)
    connection.setblocking(True)
    # The parent may end at any moment.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        Worker(function, connection, how).run()


def _close_readers() -> None:
    """A reader ends when its input is closed, so a forked process must not keep the input open."""
    from ..bridge.reader_process import close_inherited

    close_inherited()


def _use_one_thread(imports_torch: bool) -> None:
    """The workers share the cores among themselves."""
    if imports_torch:
        import torch

        torch.set_num_threads(1)
    cv2: Any = sys.modules.get("cv2")
    if cv2 is not None:
        cv2.setNumThreads(1)


class Worker:
    def __init__(self, function: Function, connection: socket.socket, how: How) -> None:
        self._function = function
        self._connection = connection
        self._how = how
        self._incoming, self._outgoing = Incoming(connection), Outgoing(connection)
        self._input = _Mapped()
        self._output = _Mapped()

    def run(self) -> None:
        self._send("ready")
        while True:
            message = self._receive()
            if message is None:
                return
            if isinstance(message, Job):
                self._send(self._do(message))
            elif message == "input":
                self._input.open(self._incoming.descriptors.popleft())
            elif message == "output":
                self._output.open(self._incoming.descriptors.popleft())
            else:
                return

    def _send(self, message: Any) -> None:
        self._outgoing.push(message)
        self._outgoing.flush()

    def _receive(self) -> Any:
        """The next message; None if the parent has ended."""
        poll = select.poll()
        poll.register(self._connection, select.POLLIN)
        while True:
            message = self._incoming.take()
            if message is not None:
                return message
            while not poll.poll(_LOOK_EVERY_MS):
                if not _runs(self._how.parent):
                    return None
            try:
                if not self._incoming.read():
                    return None
            except OSError:
                return None

    def _do(self, job: Job) -> Done:
        failures: List[Failure] = []
        varying: Dict[int, Dict[str, NDArray[Any]]] = {}
        images = self._input.array(*job.image)
        masks = {name: self._input.array(*place) for name, place in job.masks.items()}
        extra_images = {name: self._input.array(*place) for name, place in job.extra_images.items()}
        outputs = [] if job.parts is None else self._outputs(job, job.parts)
        found: Optional[Tuple[Part, ...]] = None
        for row, seed, more in zip(job.rows, job.seeds, job.more):
            if not self._begin(job, row):
                break
            if masks:
                more["masks"] = {name: mask[row].copy() for name, mask in masks.items()}
            if extra_images:
                more["extra_images"] = {name: image[row].copy() for name, image in extra_images.items()}
            try:
                # A copy: a function may change its image, and a job may be done again.
                results = self._function(images[row].copy(), seed, more)
                if job.parts is None:
                    found = tuple(parts_of(results))
                else:
                    varying[row] = _write(results, job.parts, outputs, row)
            except ResultError as error:
                failures.append(Failure(row, f"{error}", "", is_fatal=True))
            except Exception as error:
                failures.append(Failure(row, f"raised {_described(error)}", _traceback(error), is_fatal=False))
        self._begin(job, -1)
        return Done(job.number, job.rows, tuple(failures), varying, found)

    def _begin(self, job: Job, row: int) -> bool:
        """Shows the parent the row that begins now. Returns False if the loop of the job has ended."""
        at = cell_offset(self._how.number)
        numbers = self._output.array(0, (at + 8 * CELL_NUMBERS,)).view(np.float64)
        cell = numbers[at // 8 :]
        # The time first: with an older one, the parent could take the new row for one that hangs.
        cell[2] = time.monotonic()
        cell[:2] = (job.number, row)
        return int(numbers[0]) == job.loop

    def _outputs(self, job: Job, parts: Tuple[Part, ...]) -> List[NDArray[Any]]:
        offsets, _ = place_parts(parts, job.size)
        return [
            self._output.array(job.output + offset, (job.size, *part.shape), part.dtype)
            for offset, part in zip(offsets, parts)
        ]


class _Mapped:
    """A file of shared memory. It is mapped again when it has grown."""

    def __init__(self) -> None:
        self._descriptor = -1
        self._memory: Optional[mmap.mmap] = None

    def open(self, descriptor: int) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self._memory = descriptor, None

    def array(self, offset: int, shape: Tuple[int, ...], dtype: str = "uint8") -> NDArray[Any]:
        end = offset + int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        if self._memory is None or len(self._memory) < end:
            self._memory = mmap.mmap(self._descriptor, os.fstat(self._descriptor).st_size)
        return np.ndarray(shape, dtype, self._memory, offset)


def _write(
    results: Dict[Tuple[str, ...], Any], parts: Tuple[Part, ...], outputs: List[NDArray[Any]], row: int
) -> Dict[str, NDArray[Any]]:
    """Writes the results of a sample to its row. Returns the results whose length varies."""
    varying = {
        path[0]: np.atleast_1d(to_array(path, value)[0]) for path, value in results.items() if path[0] in VARYING
    }
    if len({len(array) for array in varying.values()}) > 1:
        counts = " and ".join(f"{len(array)} {name}" for name, array in varying.items())
        raise ResultError(f"it returned {counts}; return one row for each object in all of them")
    if len(results) - len(varying) != len(parts) or any(part.path not in results for part in parts):
        given = ", ".join(".".join(path) for path in results)
        wanted = ", ".join(".".join(part.path) for part in parts)
        raise ResultError(f"it returned {given}, and {wanted} for the first sample")
    for part, output in zip(parts, outputs):
        array, _ = to_array(part.path, results[part.path])
        if array.shape != part.shape or array.dtype.str != part.dtype:
            is_size = len(array.shape) == len(part.shape) == 3 and array.shape != part.shape
            raise ResultError(
                f"its {'.'.join(part.path)} is {array.dtype.name} {list(array.shape)}, and that of the first sample "
                f"was {np.dtype(part.dtype).name} {list(part.shape)}; results must have one shape and dtype"
                + (", so end with a crop or a resize" if is_size else "")
            )
        output[row] = array
    return varying


def _described(error: Exception) -> str:
    try:
        message = str(error).strip().rstrip(".")
    except Exception:
        # A custom exception whose own text fails.
        message = ""
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _traceback(error: Exception) -> str:
    """The traceback, from the user's function on."""
    trace = error.__traceback__
    own = os.path.dirname(__file__)
    while trace is not None and os.path.dirname(trace.tb_frame.f_code.co_filename) == own:
        trace = trace.tb_next
    lines = traceback.format_exception(type(error), error, trace or error.__traceback__)
    return "".join(lines)[-_SHOWN_TRACEBACK_CHARACTERS:]


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def why_not_sent(function: Function) -> Optional[str]:
    """The reason why a function cannot be sent to a process that is not forked; None if it can be sent."""
    try:
        pickle.dumps(function)
    except Exception as error:
        return str(error)
    return None
