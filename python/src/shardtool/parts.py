"""Writes one dataset from the tasks of a distributed engine: plan, write parts, commit."""

from __future__ import annotations

import contextlib
import time
import uuid
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, Mapping, Optional, Sequence, Union

from .bridge.for_reader import storage_for_reader
from .bridge.node import find_program
from .bridge.reader_process import ReaderProcess
from .errors import ShardtoolError
from .location import place
from .options import WRITER_OPTION_NAMES
from .writer import Writer

if TYPE_CHECKING:
    import os

#: How often a task looks whether another task of the same part has ended.
_LOOK_EVERY_SECONDS = 1.0


class PartWriter:
    """Writes one dataset with the tasks of a distributed engine, such as Ray or Spark::

        job = PartWriter("out", classes=["cat", "dog"])
        job.plan()                                  # in the driver
        report = job.write(3, samples)              # in task 3, on any machine; `job` was pickled
        job.commit([report, ...])                   # in the driver, with the reports of all tasks

    The number of tasks does not have to be known before :meth:`commit`. A task that is repeated writes its part again.
    If two processes write one part at the same time, as with speculative execution, the second one waits for the first
    one and keeps what it finished. Before :meth:`commit`, there is no dataset.

    ``output`` is a folder that all machines share, or a bucket. The other arguments are those of
    :class:`shardtool.Writer`, except ``part`` and ``job``.
    """

    def __init__(
        self, output: Union[str, os.PathLike[str]], *, overwrite: Optional[bool] = None, **options: Any
    ) -> None:
        for name in ("part", "job"):
            if name in options:
                raise TypeError(f"PartWriter sets the option {name!r} itself; remove it.")
        #: The folder or the bucket.
        self.output = place(output)
        self._overwrite = bool(overwrite)
        self._options = options
        #: Identifies this run: parts of an earlier run are not mixed with those of this one.
        self.job = uuid.uuid4().hex

    def plan(self) -> None:
        """Prepares the output. Call it once, before the first :meth:`write`.

        Raises :class:`shardtool.ShardtoolError` if ``output`` contains something, and removes what an earlier pack or
        writer left there if ``overwrite`` is true.
        """
        options: Dict[str, Any] = {"overwrite": self._overwrite}
        for name, value in self._options.items():
            if name in WRITER_OPTION_NAMES and value is not None:
                options[WRITER_OPTION_NAMES[name]] = value
        options.update(self._storage())
        with _writer_process() as process:
            process.ask("prepareJob", output=self.output, options=options)

    def write(self, part: int, samples: Iterable[Mapping[str, Any]]) -> Dict[str, Any]:
        """Writes the samples of task ``part``, a number from 0, and returns its report for :meth:`commit`.

        Each sample has the arguments of :meth:`shardtool.Writer.add` by name: ``key``, ``image``, ``label``,
        ``columns`` and further fields. If the iterable or a sample raises an error, the part is not finished, and no
        dataset can be made of it. Raises the errors of :class:`shardtool.Writer`.
        """
        source = _Replay(samples)
        while True:
            try:
                with Writer(self.output, part=f"{part + 1}/*", job=self.job, **self._options) as writer:
                    for sample in source:
                        writer.add(**sample)
                assert writer.report is not None
                return {"part": part, "samples": writer.report["samples"], "bytes": writer.report["bytes"]}
            except ShardtoolError as error:
                if error.kind == "PartFinishedError":
                    return {"part": part, "samples": None, "bytes": None}
                # The part is locked before the first sample is written: no sample but the first was taken so far.
                if error.kind != "OutputLockedError" or source.is_past_first:
                    raise
            time.sleep(_LOOK_EVERY_SECONDS)

    def commit(self, reports: Sequence[Mapping[str, Any]]) -> Dict[str, Any]:
        """Makes the dataset of the parts that have these reports, in the order of their numbers.

        Returns the number of ``samples``, ``shards`` and ``bytes``. Raises :class:`shardtool.ShardtoolError` if a part
        is unfinished, was reported twice or was started and not reported, if two parts have the same key, and if the
        dataset does not have as many samples as the tasks have reported.
        """
        parts = [int(report["part"]) for report in reports]
        twice = sorted({part for part in parts if parts.count(part) > 1}) if len(set(parts)) < len(parts) else []
        if twice:
            raise ShardtoolError(f"Task {twice[0]} has reported twice; give each task of the job its own number.")
        if not parts:
            raise ShardtoolError(f"No task wrote samples to {self.output}, so there is no dataset.")
        with _writer_process() as process:
            asked = {"output": self.output, "parts": [part + 1 for part in parts], **self._storage()}
            committed: Dict[str, Any] = process.ask("commitJob", **asked)["report"]
        counts = [report["samples"] for report in reports]
        if None not in counts and sum(counts) != committed["samples"]:
            message = f"{self.output} has {committed['samples']} samples, but its tasks have reported {sum(counts)}"
            raise ShardtoolError(f"{message}; write it again.")
        return {name: committed[name] for name in ("samples", "shards", "bytes")}

    def abort(self) -> None:
        """Removes what the tasks of this job have written. A committed dataset, and parts of another job, stay.

        Raises :class:`shardtool.ShardtoolError` if a task is still writing.
        """
        with _writer_process() as process:
            process.ask("abandonJob", output=self.output, job=self.job, **self._storage())

    def _storage(self) -> Dict[str, Any]:
        storage = self._options.get("storage")
        return {} if storage is None else {"storage": storage_for_reader(storage)}


class _Replay:
    """An iterable whose first item can be taken again, as long as it is the only one that was taken."""

    def __init__(self, items: Iterable[Mapping[str, Any]]) -> None:
        self._items = iter(items)
        self._first: Optional[Mapping[str, Any]] = None
        self.is_past_first = False

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        if self._first is None:
            self._first = next(self._items, None)
        if self._first is None:
            return
        yield self._first
        for item in self._items:
            self.is_past_first, self._first = True, item
            yield item


@contextlib.contextmanager
def _writer_process() -> Iterator[ReaderProcess]:
    process = ReaderProcess(find_program("writer"), "This writer was closed while it was asked something.")
    try:
        yield process
    finally:
        process.close()
