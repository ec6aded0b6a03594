"""Shards as a data source of Spark 4. Needs pyspark and pyarrow: ``pip install "pyspark>=4" pyarrow``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, cast

try:
    import pyarrow  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from pyspark import TaskContext  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from pyspark.sql.datasource import (  # type: ignore[import-not-found, import-untyped, unused-ignore]
        DataSource,
        DataSourceArrowWriter,
        DataSourceReader,
        InputPartition,
        WriterCommitMessage,
    )
except ImportError as error:
    raise ImportError('shardtool.spark needs Spark 4 and pyarrow: pip install "pyspark>=4" pyarrow.') from error

from .errors import OptionError
from .parts import PartWriter
from .ranges import RangeReader, plain, ranges_of
from .rows import RowSamples

#: Fields whose values are text; all others are bytes.
_TEXT_FIELDS = ("json", "txt")
_READ_OPTIONS = ("path", "fields", "partitions", "split", "overlay")
_WRITE_OPTIONS = (
    *("path", "key", "image", "label", "fields", "columns", "classes"),
    *("format", "name", "max_shard_bytes", "max_shard_samples"),
)


class ShardDataSource(DataSource):  # type: ignore[misc, unused-ignore]
    """The format ``shardtool`` of Spark, after ``spark.dataSource.register(ShardDataSource)``.

    Reading: ``spark.read.format("shardtool").load("shards/")`` has the columns ``key``, ``image`` (encoded bytes),
    ``label`` (-1 without a class) and the ``fields`` of the option, separated by commas. Options: ``fields``,
    ``split``, ``overlay``, ``partitions`` (default: 16, or one per shard if there are more shards).

    Writing: ``frame.write.format("shardtool").mode("append").save("shards/")`` makes a dataset of the columns ``key``,
    ``image`` (encoded bytes) and ``label``. Options: ``key``, ``image`` and ``label`` (names of these columns),
    ``fields`` (further columns that become fields), ``columns`` (label columns, such as ``score:double,site:string``),
    ``classes``, ``format``, ``name``, ``max_shard_bytes``, ``max_shard_samples``. Mode ``append`` writes to an empty
    place, ``overwrite`` replaces a dataset. Each partition is a part; a repeated task replaces its part.
    """

    @classmethod
    def name(cls) -> str:
        return "shardtool"

    def schema(self) -> str:
        fields = [f"`{name}` {'string' if _is_text(name) else 'binary'}" for name in _list(self.options.get("fields"))]
        return ", ".join(["key string", "image binary", "label int", *fields])

    def reader(self, schema: Any) -> ShardReader:
        options = _options(self.options, _READ_OPTIONS)
        seen: Dict[str, Any] = {name: options[name] for name in ("split", "overlay") if name in options}
        partitions = int(options["partitions"]) if "partitions" in options else None
        return ShardReader(options["path"], _list(options.get("fields")), partitions, seen)

    def writer(self, schema: Any, overwrite: bool) -> ShardWriter:
        options = _options(self.options, _WRITE_OPTIONS)
        columns: Dict[str, str] = dict(_pair(column) for column in _list(options.get("columns")))
        names = {name: options[name] for name in ("key", "image", "label") if name in options}
        rows = RowSamples(fields=_list(options.get("fields")), columns=columns, **names)
        rows.check(schema.names)
        how: Dict[str, Any] = {name: options[name] for name in ("format", "name") if name in options}
        how.update((name, int(options[name])) for name in ("max_shard_bytes", "max_shard_samples") if name in options)
        classes = _list(options.get("classes"))
        job = PartWriter(options["path"], classes=classes, columns=columns, overwrite=overwrite, **how)
        job.plan()
        return ShardWriter(job, rows)


class ShardReader(DataSourceReader):  # type: ignore[misc, unused-ignore]
    """Reads ranges of shards as batches of Arrow."""

    def __init__(
        self, location: str, fields: Sequence[str], partitions: Optional[int], seen: Mapping[str, Any]
    ) -> None:
        self._fields, self._partitions = fields, partitions
        self._reader = RangeReader(location, {"transform": "raw", "fields": fields, **seen})

    def partitions(self) -> Sequence[InputPartition]:
        reader = self._reader
        count = self._partitions or max(16, len(reader.shards))
        return [InputPartition(each) for each in ranges_of(reader.shards, reader.samples, count)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        start, stop = partition.value
        types = [("key", pyarrow.string()), ("image", pyarrow.binary()), ("label", pyarrow.int32())]
        types += [(name, pyarrow.string() if _is_text(name) else pyarrow.binary()) for name in self._fields]
        for columns in self._reader.read(start, stop):
            for name in self._fields:
                columns[name] = [_typed(name, value) for value in columns[name]]
            yield pyarrow.RecordBatch.from_pydict(columns, schema=pyarrow.schema(types))


@dataclass
class PartWritten(WriterCommitMessage):  # type: ignore[misc, unused-ignore]
    """What a task wrote: the report of :meth:`shardtool.parts.PartWriter.write`."""

    report: Dict[str, Any]


class ShardWriter(DataSourceArrowWriter):  # type: ignore[misc, unused-ignore]
    """Writes a part for each partition, and commits all of them."""

    def __init__(self, job: PartWriter, rows: RowSamples) -> None:
        self._job, self._rows = job, rows

    def write(self, iterator: Iterator[Any]) -> PartWritten:
        rows = (row for batch in iterator for row in batch.to_pylist())
        return PartWritten(self._job.write(TaskContext.get().partitionId(), self._rows.samples(rows)))

    def commit(self, messages: List[Optional[WriterCommitMessage]]) -> None:
        self._job.commit([cast(PartWritten, message).report for message in messages if message is not None])

    def abort(self, messages: List[Optional[WriterCommitMessage]]) -> None:
        self._job.abort()


def _is_text(field: str) -> bool:
    return field.rsplit(".", 1)[-1] in _TEXT_FIELDS


def _typed(field: str, value: Any) -> Any:
    """A value of a field as the type of its column."""
    if _is_text(field) and not isinstance(value, (str, type(None))):
        return plain(value) if not isinstance(value, (bool, int, float)) else str(value)
    given = plain(value)
    return given if given is None or isinstance(given, bytes) else str(given).encode()


def _list(text: Optional[str]) -> List[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _pair(text: str) -> Tuple[str, str]:
    name, _, kind = text.partition(":")
    if not kind:
        raise OptionError(f'The option "columns" must have names and types, such as score:double, not {text!r}.')
    return name, kind


def _options(given: Mapping[str, str], known: Sequence[str]) -> Dict[str, str]:
    options = {name.lower(): value for name, value in given.items()}
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise OptionError(
            f'The format "shardtool" has no option {unknown[0]!r} here. The options are {", ".join(known)}.'
        )
    if "path" not in options:
        raise OptionError('The format "shardtool" needs a path: .load("shards/") or .save("shards/").')
    return options
