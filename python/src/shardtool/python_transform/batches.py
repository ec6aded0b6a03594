"""The batches of a loop. The user's function transforms their images."""

from __future__ import annotations

import multiprocessing
import time
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Mapping, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

from ..batch import Arrays, Batch
from ..batches_ahead import AHEAD, BatchesAhead
from ..errors import BadSampleError, OptionError, PythonTransformError
from .function import VARYING, Function, Part
from .output_memory import Region, place_parts
from .pool import Pool
from .worker import Done, Failure, Job

if TYPE_CHECKING:
    from ..bridge.reader_process import ReaderProcess
    from ..loader import Loader

#: Number of batches that the caller may keep. Further batches are copied, so that the shared memory does not grow.
_KEPT = 4
#: Number of jobs of a batch for each worker. With more jobs, workers wait less for each other; each costs two messages.
_JOBS_PER_WORKER = 4
_MOST_ROWS_OF_A_JOB = 16


class PythonOptions:
    """The options of ``python_transform``, and what all loops share: the workers and the arrays of a result."""

    def __init__(
        self,
        function: Any,
        workers: int,
        timeout: Optional[float],
        start_method: Optional[str],
        on_bad: str,
        output: Arrays,
        with_keys: bool,
        reuse: bool,
    ) -> None:
        if not callable(function):
            raise OptionError(f"python_transform must be a function that takes an image, not {function!r}.")
        self.function = Function(function)
        self.workers = workers
        self.timeout = timeout
        self.start_method = start_method
        self.on_bad = on_bad
        self.output = output
        self.with_keys = with_keys
        self.reuse = reuse
        #: The arrays of a result, by the shape of the image.
        self.parts: Dict[Tuple[int, ...], Tuple[Part, ...]] = {}
        self.bad: List[Dict[str, Any]] = []
        self.waited_seconds = 0.0
        #: Seconds that all loops waited for the function, and samples for which it failed.
        self.waited_seconds_of_all = 0.0
        self.bad_of_all = 0
        self._pool: Optional[Pool] = None

    def waited(self) -> Tuple[float, int]:
        """How many seconds all loops waited for the function, and for how many samples it failed."""
        return self.waited_seconds_of_all, self.bad_of_all

    def pool(self) -> Pool:
        if self._pool is None or self._pool.is_closed:
            has_torch = self.output.shows_channels_first
            self._pool = Pool(self.function, self.workers, self.start_method, self.timeout, has_torch)
        return self._pool

    def add_to_report(self, report: Dict[str, Any]) -> None:
        """Adds the time and deaths of workers, and the samples for which the function failed."""
        report["python_ms"] = self.waited_seconds * 1000
        report["python_workers_replaced"] = 0 if self._pool is None else self._pool.replaced
        report["bad"] += len(self.bad)
        report["bad_samples"] = [*report["bad_samples"], *self.bad]
        if report["python_ms"] > max(report["io_ms"], report["decode_ms"], report["consumer_ms"] - report["python_ms"]):
            report["bound"] = "python"

    def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()


def check_python_options(
    workers: Optional[int],
    timeout: Optional[float],
    start_method: Optional[str],
    device: str,
    options: Mapping[str, Any],
) -> None:
    """Raises OptionError for values that are not right, and for options that cannot be combined."""
    if workers is not None and (not isinstance(workers, int) or isinstance(workers, bool) or workers < 1):
        raise OptionError(f"python_workers must be a whole number of at least 1, not {workers!r}.")
    if timeout is not None and not (isinstance(timeout, (int, float)) and timeout > 0):
        raise OptionError(f"python_timeout must be a number of seconds greater than 0, not {timeout!r}.")
    if start_method is not None and start_method not in multiprocessing.get_all_start_methods():
        methods = ", ".join(multiprocessing.get_all_start_methods())
        raise OptionError(f"python_start_method must be one of {methods}, not {start_method!r}.")
    if device != "cpu":
        raise OptionError(
            f"python_transform makes batches in the memory of the host: remove device={device!r}, and use "
            "pin_memory=True and images.to(device, non_blocking=True)."
        )
    if options.get("images"):
        raise OptionError("python_transform takes one image of each sample: remove python_transform, or images.")
    if options.get("views"):
        raise OptionError("python_transform takes one image of each sample: remove python_transform, or views.")
    if options.get("mix"):
        raise OptionError(
            "mix would be applied before python_transform: remove mix, and mix the batches in the training loop."
        )
    if options.get("transform") == "raw" or options.get("collate") == "list":
        raise OptionError(
            "python_transform takes decoded images of one size: remove transform='raw' and collate='list', and crop or "
            "resize the images in the transform."
        )


class _Pending:
    """A batch that workers process. For :class:`HeldSlots`, it is the event after which its slot may be filled
    again."""

    def __init__(self, batch: Batch, header: Dict[str, Any], pool: Pool) -> None:
        self.batch = batch
        self.header = header
        self.size = int(header["size"])
        self.remaining = self.size
        self.is_finished = False
        self.loop = pool.loop
        self.region: Optional[Region] = None
        self.parts: Tuple[Part, ...] = ()
        #: By row.
        self.failures: Dict[int, Failure] = {}
        self.varying: Dict[int, Dict[str, NDArray[Any]]] = {}
        self._pool = pool

    def query(self) -> bool:
        """Whether the slot may be filled again."""
        return self.is_finished or self._pool.is_closed or self._pool.loop != self.loop

    def add(self, done: Done) -> None:
        self.remaining -= len(done.rows)
        self.failures.update({failure.row: failure for failure in done.failures})
        self.varying.update(done.varying)


class PythonBatches(BatchesAhead[_Pending]):
    """One loop's batches, which workers process before they are requested."""

    def __init__(self, loader: Loader, reader: ReaderProcess, options: PythonOptions) -> None:
        super().__init__(loader, reader)
        self._options = options
        self._pool = options.pool()
        options.bad, options.waited_seconds = [], 0.0
        self._jobs: Dict[int, _Pending] = {}
        self._next_job = 0
        #: With ``reuse``, the region of the batch that was delivered last.
        self._delivered: Optional[Region] = None
        self._pool.begin_loop(self._key_of)

    def next(self) -> Optional[Batch]:
        if self._delivered is not None:
            self._pool.memory.give_back(self._delivered)
            self._delivered = None
        return super().next()

    def _finish(self, taken: _Pending) -> Batch:
        self._wait_for(taken)
        batch = self._loader._pinned_copy(self._with_results(taken))
        taken.is_finished = True
        self._loader._count(taken.header)
        return batch

    def _begin(self, batch: Batch, header: Dict[str, Any]) -> _Pending:
        images = header["images"]
        if images is None and header["list"] is None and header["encoded"] is None:
            raise OptionError(
                "python_transform takes images, and the samples have none: remove it, and transform the arrays of a "
                "batch in your own code."
            )
        if images is None or header["layout"] != "nhwc" or header["dtype"] != "uint8":
            raise OptionError(
                "python_transform takes uint8 images [h, w, 3] of one size: remove the steps normalize, to_dtype and "
                "layout from the transform. python_transform can do the same."
            )
        pending = _Pending(batch, header, self._pool)
        self._loader._hold_until(pending)
        self._pool.use_input(self._reader, self._reader.slot_file)
        shape = tuple(images["shape"][1:])
        parts = self._options.parts.get(shape)
        if parts is None:
            parts = self._find_parts(pending)
            self._options.parts[shape] = parts
        pending.parts = parts
        pending.region = self._pool.memory.take(place_parts(parts, pending.size)[1])
        rows_of_job = max(1, min(_MOST_ROWS_OF_A_JOB, -(-pending.size // (self._options.workers * _JOBS_PER_WORKER))))
        for start in range(0, pending.size, rows_of_job):
            self._submit(pending, range(start, min(pending.size, start + rows_of_job)))
        return pending

    def _submit(self, pending: _Pending, rows: Iterable[int]) -> None:
        header, batch = pending.header, pending.batch
        shape = tuple(header["images"]["shape"])
        rows = tuple(rows)
        self._next_job += 1
        self._jobs[self._next_job] = pending
        wants = self._options.function.wants
        self._pool.submit(
            Job(
                number=self._next_job,
                loop=self._pool.loop,
                rows=rows,
                image=(header["images"]["offset"], shape),
                masks={name: (at, shape[:3]) for name, at in header["masks"].items()} if wants("masks") else {},
                extra_images={name: (at, shape) for name, at in header["extraImages"].items()}
                if wants("extra_images")
                else {},
                seeds=tuple(int(batch.row_seeds[row]) for row in rows),
                more=tuple(self._more(batch, row) for row in rows),
                size=pending.size,
                output=0 if pending.region is None else pending.region.offset,
                parts=None if pending.region is None else pending.parts,
            )
        )

    def _more(self, batch: Batch, row: int) -> Dict[str, Any]:
        """The arguments of the function for a row, except those that workers take from the slot."""
        more: Dict[str, Any] = {}
        for name in self._options.function.parameters:
            if name == "label":
                more[name] = int(batch.labels[row])
            elif name == "key":
                more[name] = batch[2][row]
            elif name == "index":
                more[name] = int(batch.indices[row])
            elif name == "epoch":
                more[name] = batch.epoch
            elif name == "seed":
                more[name] = int(batch.row_seeds[row])
            elif name == "fields":
                more[name] = {field: values[row] for field, values in batch.fields.items()}
            elif name in VARYING:
                values = getattr(batch, name)
                start, end = (0, 0) if batch.offsets is None else batch.offsets[row : row + 2]
                more[name] = None if values is None else values[start:end]
            else:
                more[name] = {}
        return more

    def _find_parts(self, pending: _Pending) -> Tuple[Part, ...]:
        """The arrays of a result for images of this shape, from the first sample for which the function succeeds."""
        for row in range(pending.size):
            pending.remaining = 1
            found: List[Tuple[Part, ...]] = []
            self._submit(pending, (row,))
            start = time.monotonic()
            while pending.remaining > 0:
                found += [done.parts for done in self._receive() if done.parts is not None]
            self._options.waited_seconds_of_all += time.monotonic() - start
            if found:
                pending.remaining, pending.failures = pending.size, {}
                return found[0]
            if pending.batch.valid[row]:
                self._judge(pending, row, is_last=row == pending.size - 1)
        raise PythonTransformError("python_transform failed for all samples of a batch, so its result is unknown.")

    def _receive(self) -> List[Done]:
        answers = self._pool.wait()
        for done in answers:
            pending = self._jobs.get(done.number)
            if pending is not None:
                pending.add(done)
        return answers

    def _wait_for(self, pending: _Pending) -> None:
        start = time.monotonic()
        while pending.remaining > 0:
            self._receive()
        waited = time.monotonic() - start
        self._options.waited_seconds += waited
        self._options.waited_seconds_of_all += waited
        self._jobs = {number: other for number, other in self._jobs.items() if other is not pending}

    def _key_of(self, job: int, row: int) -> str:
        pending = self._jobs.get(job)
        return f"row {row}" if pending is None else str(pending.batch[2][row])

    def _judge(self, pending: _Pending, row: int, is_last: bool = False) -> None:
        """Raises the error for a row for which the function failed, unless such samples are skipped."""
        failure = pending.failures[row]
        key = pending.batch[2][row]
        name = self._options.function.name
        traceback = f"\n{failure.traceback}" if failure.traceback else ""
        if failure.is_fatal:
            raise PythonTransformError(f"python_transform={name} at sample {key!r}: {failure.reason}.", key=key)
        if self._options.on_bad == "raise" or is_last:
            raise BadSampleError(
                f"Sample {key!r} cannot be used: python_transform={name} {failure.reason}. Fix the function, or set "
                f"on_bad='skip', with which report() lists such samples.{traceback}",
                key=key,
            )

    def _with_results(self, pending: _Pending) -> Batch:
        """The batch for the caller."""
        assert pending.region is not None
        memory, region = self._pool.memory, pending.region
        batch, valid = pending.batch, np.array(pending.batch.valid)
        for row in sorted(pending.failures):
            if valid[row] or pending.failures[row].is_fatal:
                self._judge(pending, row)
                reason = pending.failures[row].reason
                self._options.bad_of_all += 1
                self._options.bad.append({"shard": None, "key": batch[2][row], "reason": f"python_transform {reason}"})
            valid[row] = False
        is_copied = not self._options.reuse and memory.delivered >= _KEPT + AHEAD
        owner = None if is_copied or self._options.reuse else memory.deliver(region)
        offsets, _ = place_parts(pending.parts, pending.size)
        results: Dict[Tuple[str, ...], NDArray[Any]] = {}
        for offset, part in zip(offsets, pending.parts):
            array = memory.array(region.offset + offset, part, pending.size, owner)
            for row in pending.failures:
                array[row] = 0
            array = array.copy() if is_copied else array
            is_shown = part.is_channels_last and self._options.output.shows_channels_first
            results[part.path] = np.moveaxis(array, -1, 1) if is_shown else array
        if is_copied:
            memory.give_back(region)
        elif self._options.reuse:
            self._delivered = region
        return self._assembled(batch, valid, results, pending)

    def _assembled(
        self, batch: Batch, valid: NDArray[Any], results: Mapping[Tuple[str, ...], NDArray[Any]], pending: _Pending
    ) -> Batch:
        to = self._options.output
        named = {path[0]: array for path, array in results.items() if len(path) == 1}
        labels = named.pop("label", batch.labels)
        parts = [named.pop("image"), labels, *(batch[2:] if self._options.with_keys else ())]
        made: Batch = Batch(_converted(part, to) for part in parts)
        attributes = dict(batch.__dict__)
        attributes["valid"] = valid
        attributes["fields"] = {**batch.fields, **named}
        for group in ("masks", "extra_images"):
            before = {name: np.array(array) for name, array in getattr(batch, group).items()}
            after = {path[1]: array for path, array in results.items() if path[0] == group and len(path) == 2}
            attributes[group] = {**before, **after}
        attributes.update(_joined(pending))
        made.__dict__.update({name: _converted(value, to) for name, value in attributes.items()})
        return made


def _joined(pending: _Pending) -> Dict[str, Any]:
    """The boxes and other results by object, one row after the other. Empty if the function returned none."""
    rows = [pending.varying.get(row, {}) for row in range(pending.size)]
    names = list(next((varying for varying in rows if varying), {}))
    if not names:
        return {}
    for row, varying in enumerate(rows):
        if set(varying) != set(names) and row not in pending.failures:
            key = pending.batch[2][row]
            raise PythonTransformError(
                f"python_transform returned {', '.join(varying) or 'no boxes or the like'} for sample {key!r}, and "
                f"{', '.join(names)} for another sample of its batch: return the same names for all samples, also if "
                "a sample has no objects.",
                key=key,
            )
    counts = [len(varying[names[0]]) if varying else 0 for varying in rows]
    joined: Dict[str, Any] = {"offsets": np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)}
    for name in names:
        arrays = [varying[name] for varying in rows if varying and len(varying[name]) > 0]
        before = getattr(pending.batch, name)
        shapes = {array.shape[1:] for array in arrays}
        if len(shapes) > 1:
            given = " and ".join(str(["n", *shape]).replace("'", "") for shape in sorted(shapes))
            raise PythonTransformError(
                f"python_transform returned {name} of shapes {given} for samples of one batch: "
                "return arrays that differ only in the number of rows."
            )
        if arrays:
            joined[name] = np.concatenate(arrays).astype(arrays[0].dtype if before is None else before.dtype)
        else:
            joined[name] = np.zeros((0,), np.float32) if before is None else before[:0]
    # Values that the function did not return would describe other objects than those of this batch.
    joined.update({name: None for name in (*VARYING, "polygons") if name not in names})
    return joined


def _converted(value: Any, to: Arrays) -> Any:
    """The value, with its arrays converted to the output of the loader."""
    if isinstance(value, np.ndarray):
        try:
            return to.values(value)
        except TypeError:
            # torch does not have this dtype.
            return value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_converted(one, to) for one in value))
    if isinstance(value, Mapping):
        return {name: _converted(one, to) for name, one in value.items()}
    return value
