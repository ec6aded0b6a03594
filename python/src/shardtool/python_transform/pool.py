"""The worker processes: starts, replaces and ends them, and gives them jobs."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import select
import socket
import threading
import time
import weakref
from collections import deque
from typing import Any, Callable, Deque, Dict, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

from ..errors import OptionError, PythonTransformError, StaleIteratorError, how_it_ended, warn
from .function import Function
from .messages import Incoming, Outgoing
from .output_memory import CELL_NUMBERS, OutputMemory, cell_offset
from .worker import Done, Failure, How, Job, why_not_sent, work

#: How long a worker may take to end by itself before it is killed.
_PATIENCE_SECONDS = 2.0
#: How often a pool checks for workers that hang or died, and whether it was closed.
_LOOK_EVERY_SECONDS = 0.2
#: Without a timeout, a warning names a sample that takes longer.
_SLOW_SECONDS = 60.0
#: A sample is bad if as many workers died while they processed it.
_MOST_DEATHS = 3
#: The row of a worker that is between two samples.
_NO_ROW = -1


class Current(NamedTuple):
    """The sample that a worker is processing, as the worker writes it to shared memory."""

    job: int
    row: int
    #: Seconds of time.monotonic, which is the same clock in all processes.
    since: float


class Process:
    """A worker process, in its parent."""

    def __init__(self, process: Any, connection: socket.socket) -> None:
        self.process = process
        self.connection = connection
        self.incoming, self.outgoing = Incoming(connection), Outgoing(connection)
        #: Jobs without an answer, in the order in which the worker does them.
        self.jobs: Deque[Job] = deque()
        self.is_ready = False
        #: The reader whose slots the worker has mapped.
        self.input: Any = None
        with _STARTED_LOCK:
            _STARTED.add(self)

    @property
    def rows(self) -> int:
        """Number of rows in its jobs."""
        return sum(len(job.rows) for job in self.jobs)


#: Workers of all pools of this process.
_STARTED: weakref.WeakSet[Process] = weakref.WeakSet()
#: Held while a thread uses the set.
_STARTED_LOCK = threading.Lock()


class Pool:
    """Worker processes that do jobs. If one dies, another one starts in its place and does its jobs again."""

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
        #: How many workers died, by job and row.
        self._deaths: Dict[Tuple[int, int], int] = {}
        self._warned: Optional[Tuple[int, int]] = None
        self._key_of: Callable[[int, int], str] = lambda job, row: f"row {row}"
        self.replaced = 0
        self._alive: List[Process] = []
        self._finalizer = weakref.finalize(self, _end_all, self._alive, self.memory.numbers, os.getpid())
        self._is_closed = False
        #: Held while a thread uses the connections.
        self._in_use = threading.RLock()

    @property
    def has_jobs(self) -> bool:
        return any(worker is not None and worker.jobs for worker in self._workers)

    @property
    def loop(self) -> int:
        """Number of the loop. Workers skip the jobs of earlier loops."""
        return int(self.memory.numbers[0])

    def begin_loop(self, key_of: Callable[[int, int], str]) -> None:
        """Skips the jobs of the previous loop. Waits until each worker has finished its current row."""
        self.memory.numbers[0] += 1
        self._key_of = key_of
        self._deaths.clear()
        while self.has_jobs:
            self.wait()
        self.memory.give_back_taken()

    def use_input(self, owner: Any, descriptor: int) -> None:
        """Sets the file with the images of the next jobs."""
        if self._input is None or self._input[0] is not owner:
            self._input = (owner, descriptor)

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    def submit(self, job: Job) -> None:
        """Gives a job to the worker with the fewest rows."""
        with self._connections():
            number = min(range(len(self._workers)), key=self._rows)
            self._give(self._worker(number), job)

    def wait(self) -> List[Done]:
        """Waits for answers for a short time. Raises :class:`PythonTransformError` if workers cannot run."""
        with self._connections():
            return [*self._receive(), *self._end_hanging()]

    @contextlib.contextmanager
    def _connections(self) -> Iterator[None]:
        """Other threads wait. An interrupt such as Ctrl-C may lose messages of workers, so it closes the pool."""
        with self._in_use:
            self._check()
            try:
                yield
            except Exception:
                # A signal's handler may have closed the loader, and with it the connections.
                self._check()
                raise
            except BaseException:
                self.close()
                raise

    def _check(self) -> None:
        if self._is_closed:
            raise StaleIteratorError("The loader was closed while its workers were busy: start a new loop.")

    def close(self) -> None:
        """Ends the workers. A thread that waits for them raises :class:`StaleIteratorError`."""
        self._is_closed = True
        with self._in_use:
            self._finalizer()

    def _receive(self) -> List[Done]:
        answers: List[Done] = []
        by_descriptor = {worker.connection.fileno(): worker for worker in self._running()}
        poll = select.poll()
        for descriptor, worker in by_descriptor.items():
            self._flush(worker)
            poll.register(descriptor, select.POLLIN | (select.POLLOUT if worker.outgoing else 0))
        ready = poll.poll(int(_LOOK_EVERY_SECONDS * 1000))
        for descriptor, _ in ready:
            worker = by_descriptor[descriptor]
            if not self._read(worker, answers):
                answers += self._replace(worker)
        if not ready:
            # A process that a worker has forked may keep the connection of the dead worker open.
            for worker in self._running():
                if worker.process.exitcode is not None:
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
        # If the worker is dead, the next read detects it.
        with contextlib.suppress(OSError):
            worker.outgoing.flush()

    def _read(self, worker: Process, answers: List[Done]) -> bool:
        """Adds the answers of a worker. Returns False if the worker is dead."""
        try:
            is_open = worker.incoming.read()
        except BlockingIOError:
            return True
        except OSError:
            is_open = False
        while (message := worker.incoming.take()) is not None:
            if message == "ready":
                worker.is_ready = True
            else:
                assert worker.jobs[0].number == message.number
                worker.jobs.popleft()
                answers.append(message)
        return is_open

    def _start(self, number: int) -> Process:
        self._check_function()
        if multiprocessing.current_process().daemon:
            raise PythonTransformError(
                "python_transform starts worker processes, but a daemon process may not start processes: create the "
                "loader in the main process, or start this process with daemon=False."
            )
        own, other = socket.socketpair()
        # In another thread, the kernel would end the worker when that thread ends.
        ends_with_parent = self._method != "forkserver" and threading.current_thread() is threading.main_thread()
        inherited: Tuple[socket.socket, ...] = ()
        if self._method == "fork":
            with _STARTED_LOCK:
                inherited = (own, *(one.connection for one in _STARTED))
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
                f"{self._method!r} ({why}): define it and everything it uses at the top level of a module, or set "
                "python_start_method='fork'."
            )

    def _replace(self, worker: Process) -> List[Done]:
        """Gives the jobs of a dead worker to others. A sample at which workers die again and again is a bad sample."""
        worker.process.join(_PATIENCE_SECONDS)
        worker.process.kill()
        worker.process.join()
        current = self._current(worker)
        how = how_it_ended(worker.process.exitcode)
        self._forget(worker)
        if not worker.is_ready:
            raise PythonTransformError(
                f"A worker of python_transform {how} before it was ready; see its output for the reason. With 'spawn' "
                "and 'forkserver', the script that makes the loader must do so below the line "
                'if __name__ == "__main__":.'
            )
        if not worker.jobs:
            return self._do_again(worker, [])
        at = (worker.jobs[0].number, _NO_ROW if current is None else current.row)
        deaths = self._deaths[at] = self._deaths.get(at, 0) + 1
        if deaths < _MOST_DEATHS:
            return self._do_again(worker, [])
        if current is None:
            raise PythonTransformError(
                f"{deaths} workers of python_transform ended, one after the other, before or after they called the "
                f"function for the same images. The last one {how}; see its output for the reason."
            )
        reason = f"ended its worker process {deaths} times: it {how}"
        return self._do_again(worker, [Failure(at[1], reason, "", False)])

    def _do_again(self, worker: Process, failures: List[Failure]) -> List[Done]:
        """Gives the jobs of a dead worker to others, without the rows that failed."""
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
        """Kills workers that have been processing one sample for longer than the timeout."""
        answers: List[Done] = []
        for worker in self._running():
            current = self._current(worker)
            if current is None:
                continue
            seconds = time.monotonic() - current.since
            at = (current.job, current.row)
            if self._timeout is not None and seconds > self._timeout:
                worker.process.kill()
                worker.process.join()
                self._forget(worker)
                reason = f"took longer than python_timeout={self._timeout:g} seconds"
                answers += self._do_again(worker, [Failure(current.row, reason, "", False)])
            elif self._timeout is None and seconds > _SLOW_SECONDS and self._warned != at:
                self._warned = at
                warn(
                    f"python_transform has been processing sample {self._key_of(*at)!r} for {seconds:.0f} seconds. To "
                    "make such a sample a bad sample, set python_timeout to a number of seconds."
                )
        return answers

    def _current(self, worker: Process) -> Optional[Current]:
        """The row of its first job that a worker is processing, if it is processing one."""
        at = cell_offset(self._workers.index(worker)) // 8
        job, row, since = self.memory.numbers[at : at + CELL_NUMBERS]
        current = Current(int(job), int(row), float(since))
        is_at_row = worker.jobs and current.job == worker.jobs[0].number and current.row in worker.jobs[0].rows
        return current if is_at_row else None

    def _forget(self, worker: Process) -> None:
        # If a signal's handler has closed the pool meanwhile, no worker is left to forget.
        self._check()
        number = self._workers.index(worker)
        self._workers[number] = None
        at = cell_offset(number) // 8
        self.memory.numbers[at : at + CELL_NUMBERS] = 0
        self._alive.remove(worker)
        worker.connection.close()


def _without(job: Job, rows: Any) -> Optional[Job]:
    """The job without these rows; None if no row remains."""
    kept = [i for i, row in enumerate(job.rows) if row not in rows]
    if not kept:
        return None
    return job._replace(
        rows=tuple(job.rows[i] for i in kept),
        seeds=tuple(job.seeds[i] for i in kept),
        more=tuple(job.more[i] for i in kept),
    )


def _end_all(workers: List[Process], numbers: NDArray[np.float64], owner: int) -> None:
    """Ends workers, each after its current row. In a forked process, does nothing."""
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
