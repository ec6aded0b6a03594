"""Worker processes: their start, their end, and the jobs that they have."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import select
import signal
import socket
import threading
import time
import weakref
from collections import deque
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

from ..errors import OptionError, PythonTransformError, StaleIteratorError, warn
from .function import Function
from .messages import Incoming, Outgoing
from .output_memory import CELL_NUMBERS, OutputMemory, cell_offset
from .worker import Done, Failure, How, Job, why_not_sent, work

#: How long a worker may take to end by itself.
_PATIENCE_SECONDS = 2.0
#: How often a pool looks for workers that hang, and whether it was closed.
_LOOK_EVERY_SECONDS = 0.2
#: A sample that takes longer is named in a warning, unless there is a timeout.
_SLOW_SECONDS = 60.0
#: A sample during which as many workers died is a bad one.
_DEATHS_OF_A_SAMPLE = 3


class Doing(NamedTuple):
    """What a worker says of itself, in shared memory."""

    job: int
    row: int
    since: float


class Process:
    """A worker process as its parent sees it."""

    def __init__(self, process: Any, connection: socket.socket) -> None:
        self.process = process
        self.connection = connection
        self.incoming, self.outgoing = Incoming(connection), Outgoing(connection)
        #: In the order in which it does them.
        self.jobs: Deque[Job] = deque()
        self.is_ready = False
        #: The reader whose slots it has mapped.
        self.input: Any = None
        _STARTED.add(self)

    @property
    def rows(self) -> int:
        """Rows that it still has to do, or a part of them."""
        return sum(len(job.rows) for job in self.jobs)


#: Workers of all pools of this process.
_STARTED: weakref.WeakSet[Process] = weakref.WeakSet()


class Pool:
    """Workers that do jobs. One that dies is replaced, and its jobs are done again."""

    def __init__(
        self, function: Function, workers: int, start_method: Optional[str], timeout: Optional[float], torch: bool
    ) -> None:
        self._function = function
        self._context = multiprocessing.get_context(start_method)
        self._method = start_method or multiprocessing.get_start_method()
        self._timeout = timeout
        self._imports_torch = torch
        self.memory = OutputMemory(workers)
        self._input: Optional[Tuple[Any, int]] = None
        self._workers: List[Optional[Process]] = [None] * workers
        #: By job and row: how many workers died there.
        self._deaths: Dict[Tuple[int, int], int] = {}
        self._warned: Optional[Tuple[int, int]] = None
        self._key_of: Callable[[int, int], str] = lambda job, row: f"row {row}"
        self.replaced = 0
        self._alive: List[Process] = []
        self._finalizer = weakref.finalize(self, _end_all, self._alive, self.memory.numbers, os.getpid())
        self._is_closed = False
        #: Held by the thread that uses the connections.
        self._in_use = threading.RLock()

    @property
    def has_jobs(self) -> bool:
        return any(worker is not None and worker.jobs for worker in self._workers)

    @property
    def loop(self) -> int:
        """Jobs of an earlier loop are not done any more."""
        return int(self.memory.numbers[0])

    def begin_loop(self, key_of: Callable[[int, int], str]) -> None:
        """Jobs that are under way are left: this waits for the row that each worker is at."""
        self.memory.numbers[0] += 1
        self._key_of = key_of
        self._deaths.clear()
        while self.has_jobs:
            self.wait()
        self.memory.give_back_taken()

    def use_input(self, owner: Any, descriptor: int) -> None:
        """The file that has the images of the jobs from now on."""
        if self._input is None or self._input[0] is not owner:
            self._input = (owner, descriptor)

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    def submit(self, job: Job) -> None:
        """Gives a job to the worker that has least to do."""
        with self._in_use:
            self._check()
            number = min(range(len(self._workers)), key=self._rows)
            self._give(self._worker(number), job)

    def wait(self) -> List[Done]:
        """Waits for answers for a short time. Raises :class:`PythonTransformError` if workers cannot run."""
        with self._in_use:
            self._check()
            try:
                answers = self._hear()
                answers += self._end_hanging()
                return answers
            except OSError:
                # A signal's handler has closed the loader.
                self._check()
                raise

    def _check(self) -> None:
        if self._is_closed:
            raise StaleIteratorError("The loader was closed while its workers were busy: begin a new loop.")

    def close(self) -> None:
        """Ends the workers; a thread that waits for them is told."""
        self._is_closed = True
        with self._in_use:
            self._finalizer()

    def _hear(self) -> List[Done]:
        answers: List[Done] = []
        by_descriptor = {worker.connection.fileno(): worker for worker in self._running()}
        poll = select.poll()
        for descriptor, worker in by_descriptor.items():
            self._flush(worker)
            poll.register(descriptor, select.POLLIN | (select.POLLOUT if worker.outgoing else 0))
        for descriptor, _ in poll.poll(int(_LOOK_EVERY_SECONDS * 1000)):
            worker = by_descriptor[descriptor]
            if not self._read(worker, answers):
                answers += self._replace(worker)
        return answers

    def _rows(self, number: int) -> int:
        worker = self._workers[number]
        return 0 if worker is None else worker.rows

    def _running(self) -> List[Process]:
        return [worker for worker in self._workers if worker is not None]

    def _worker(self, number: int) -> Process:
        worker = self._workers[number]
        if worker is None:
            worker = self._start(number)
            self._workers[number] = worker
        return worker

    def _give(self, worker: Process, job: Job) -> None:
        assert self._input is not None
        if worker.input is not self._input[0]:
            worker.input = self._input[0]
            worker.outgoing.push("input", (self._input[1],))
        worker.jobs.append(job)
        worker.outgoing.push(job)
        self._flush(worker)

    def _flush(self, worker: Process) -> None:
        # If the worker is gone, reading from it says so, too.
        with contextlib.suppress(OSError):
            worker.outgoing.flush()

    def _read(self, worker: Process, answers: List[Done]) -> bool:
        """False: the worker is gone. Answers that it has sent count all the same."""
        try:
            is_there = worker.incoming.read()
        except BlockingIOError:
            return True
        except OSError:
            is_there = False
        while (message := worker.incoming.take()) is not None:
            if message == "ready":
                worker.is_ready = True
            else:
                assert worker.jobs[0].number == message.number
                worker.jobs.popleft()
                answers.append(message)
        return is_there

    def _start(self, number: int) -> Process:
        self._check_function()
        if multiprocessing.current_process().daemon:
            raise PythonTransformError(
                "python_transform starts worker processes, which this process may not do, since it is a daemon itself: "
                "make the loader in the main process, or start this process with daemon=False."
            )
        own, other = socket.socketpair()
        # The kernel would end it with the thread that starts it.
        ends_with_parent = self._method != "forkserver" and threading.current_thread() is threading.main_thread()
        inherited = (own, *(one.connection for one in _STARTED)) if self._method == "fork" else ()
        how = How(number, os.getpid(), inherited, ends_with_parent, self._imports_torch)
        context: Any = self._context
        process = context.Process(target=work, args=(self._function, other, how), daemon=True)
        try:
            process.start()
        except BaseException:
            own.close()
            raise
        finally:
            other.close()
        own.setblocking(False)
        worker = Process(process, own)
        self._alive.append(worker)
        worker.outgoing.push("output", (self.memory.descriptor,))
        self._flush(worker)
        return worker

    def _check_function(self) -> None:
        if self._method == "fork":
            return
        why = why_not_sent(self._function)
        if why is not None:
            raise OptionError(
                f"python_transform={self._function.name} cannot be sent to a worker process, which is started by "
                f"{self._method!r} ({why}): define it with def at the top level of a module, and what it needs too, or "
                "set python_start_method='fork'."
            )

    def _replace(self, worker: Process) -> List[Done]:
        """The worker has ended. Its jobs go to another one; a sample that ends workers again and again is left out."""
        worker.process.join(_PATIENCE_SECONDS)
        worker.process.kill()
        worker.process.join()
        doing = self._doing(worker)
        how = _how_it_ended(worker.process.exitcode)
        self._forget(worker)
        if not worker.is_ready:
            raise PythonTransformError(
                f"A worker of python_transform {how} before it was ready; what it printed says why. If it is "
                "started by 'spawn' or 'forkserver', the script that makes the loader needs the line "
                'if __name__ == "__main__": in front of what it does.'
            )
        failures: List[Failure] = []
        if worker.jobs and doing.job == worker.jobs[0].number and doing.row in worker.jobs[0].rows:
            at = (doing.job, doing.row)
            self._deaths[at] = self._deaths.get(at, 0) + 1
            if self._deaths[at] >= _DEATHS_OF_A_SAMPLE:
                failures.append(
                    Failure(doing.row, f"ended its worker process {self._deaths[at]} times: it {how}", "", False)
                )
        return self._do_again(worker, failures)

    def _do_again(self, worker: Process, failures: List[Failure]) -> List[Done]:
        """Gives the jobs of a worker that ended to others, without the rows that failed."""
        self.replaced += 1
        answers: List[Done] = []
        for failure in failures:
            answers.append(Done(worker.jobs[0].number, (failure.row,), (failure,), {}, None))
        for job in worker.jobs:
            if job.loop != self.loop:
                continue
            failed = {failure.row for failure in failures} if job is worker.jobs[0] else set()
            rest = _without(job, failed)
            if rest is not None:
                self.submit(rest)
        return answers

    def _end_hanging(self) -> List[Done]:
        """Ends workers that have been at one sample for too long."""
        answers: List[Done] = []
        for worker in self._running():
            doing = self._doing(worker)
            if not worker.jobs or doing.job != worker.jobs[0].number or doing.row not in worker.jobs[0].rows:
                continue
            seconds = time.monotonic() - doing.since
            at = (doing.job, doing.row)
            if self._timeout is not None and seconds > self._timeout:
                worker.process.kill()
                worker.process.join()
                self._forget(worker)
                reason = f"took longer than python_timeout={self._timeout:g} seconds"
                answers += self._do_again(worker, [Failure(doing.row, reason, "", False)])
            elif self._timeout is None and seconds > _SLOW_SECONDS and self._warned != at:
                self._warned = at
                warn(
                    f"python_transform has been at sample {self._key_of(*at)!r} for {seconds:.0f} seconds. "
                    "python_timeout=30 makes a sample that takes longer a bad sample."
                )
        return answers

    def _doing(self, worker: Process) -> Doing:
        at = cell_offset(self._workers.index(worker)) // 8
        job, row, since = self.memory.numbers[at : at + CELL_NUMBERS]
        return Doing(int(job), int(row), float(since))

    def _forget(self, worker: Process) -> None:
        number = self._workers.index(worker)
        self._workers[number] = None
        at = cell_offset(number) // 8
        self.memory.numbers[at : at + CELL_NUMBERS] = 0
        self._alive.remove(worker)
        worker.connection.close()


def _without(job: Job, rows: Any) -> Optional[Job]:
    """A job without these rows; None if none is left."""
    kept = [i for i, row in enumerate(job.rows) if row not in rows]
    if not kept:
        return None
    return job._replace(
        rows=tuple(job.rows[i] for i in kept),
        seeds=tuple(job.seeds[i] for i in kept),
        more=tuple(job.more[i] for i in kept),
    )


def _how_it_ended(code: Optional[int]) -> str:
    if code is None or code >= 0:
        return f"ended with exit status {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = " (the kernel does that to processes when memory is short)" if -code == signal.SIGKILL else ""
    return f"was ended by {name}{hint}"


def _end_all(workers: List[Process], numbers: NDArray[np.float64], owner: int) -> None:
    """Ends workers, each behind the row that it is at. A forked process leaves them alone."""
    if os.getpid() != owner:
        return
    numbers[0] += 1
    for worker in workers:
        worker.outgoing.push("end")
        with contextlib.suppress(OSError):
            worker.outgoing.flush()
        worker.connection.close()
    deadline = time.monotonic() + _PATIENCE_SECONDS
    for worker in workers:
        worker.process.join(max(0.0, deadline - time.monotonic()))
        if worker.process.exitcode is None:
            worker.process.kill()
            worker.process.join()
    workers.clear()
