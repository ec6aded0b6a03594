"""Shards as a source and a sink of Ray Data. Needs ray: ``pip install "ray[data]"``."""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Union

import numpy as np

try:
    from ray.data import Datasink, Datasource, ReadTask  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from ray.data.block import (  # type: ignore[import-not-found, import-untyped, unused-ignore]
        BlockAccessor,
        BlockMetadata,
    )
except ImportError as error:
    raise ImportError('shardtool.ray needs Ray Data: pip install "ray[data]".') from error

from .errors import ShardtoolError
from .parts import PartWriter
from .ranges import RangeReader, plain, ranges_of
from .rows import RowSamples

if TYPE_CHECKING:
    import os

    from .location import Location


class ShardDatasource(Datasource):  # type: ignore[misc, unused-ignore]
    """Reads a dataset into Ray: ``ray.data.read_datasource(ShardDatasource("shards/"))``.

    Rows have ``key``, ``image``, ``label`` (-1 without a class) and the ``fields`` that you ask for. ``image`` is the
    encoded image as bytes, or with another ``transform`` than ``"raw"`` an array [h, w, 3] of the size that it gives.
    Fields of JSON are text, and arrays are the bytes of npy files.

    Each read task reads a range of shards. ``**options`` are those of :class:`shardtool.Dataset`, except ``output``.
    """

    def __init__(self, location: Location, *, transform: Any = "raw", **options: Any) -> None:
        super().__init__()
        self._reader = RangeReader(location, {"transform": transform, **options})

    def get_name(self) -> str:
        return "Shards"

    def estimate_inmemory_data_size(self) -> Optional[int]:
        return None

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: Optional[int] = None, data_context: Any = None
    ) -> List[ReadTask]:
        reader = self._reader
        return [
            ReadTask(
                partial(_blocks, reader, start, stop),
                BlockMetadata(num_rows=stop - start, size_bytes=None, exec_stats=None, input_files=None),
                per_task_row_limit=per_task_row_limit,
            )
            for start, stop in ranges_of(reader.shards, reader.samples, parallelism)
        ]


def _blocks(reader: RangeReader, start: int, stop: int) -> Iterator[Any]:
    for columns in reader.read(start, stop):
        images = columns.pop("image")
        batch: Dict[str, Any] = {
            "key": np.asarray(columns.pop("key"), object),
            "image": images if isinstance(images[0], bytes) else np.stack(images),
            "label": np.asarray(columns.pop("label"), np.int64),
        }
        batch.update((name, [plain(value) for value in values]) for name, values in columns.items())
        yield BlockAccessor.batch_to_block(batch)


class ShardDatasink(Datasink):  # type: ignore[misc, unused-ignore]
    """Writes a dataset from Ray: ``ds.write_datasink(ShardDatasink("shards/", classes=["cat", "dog"]))``.

    ``key``, ``image`` and ``label`` name the columns with the key, the image (encoded bytes, or an array uint8
    [h, w, 3]) and the class (a name or a number). ``fields`` are columns that become fields of a sample, and
    ``columns`` are label columns with their types. Any other column is an error. ``output`` is a folder that all nodes
    share, or a bucket. ``**options`` are those of :class:`shardtool.Writer`.

    Each write task writes a part; a task that Ray repeats replaces its part. When all are done, the dataset is
    committed, and ``report`` has its number of samples. If the write fails, what it wrote is removed.
    """

    def __init__(
        self,
        output: Union[str, os.PathLike[str]],
        *,
        key: str = "key",
        image: str = "image",
        label: str = "label",
        fields: Sequence[str] = (),
        columns: Optional[Mapping[str, str]] = None,
        **options: Any,
    ) -> None:
        self._rows = RowSamples(key, image, label, fields, columns)
        self._job = PartWriter(output, columns=columns, **options)
        self._is_planned = False
        self.report: Optional[Dict[str, Any]] = None

    def get_name(self) -> str:
        return "Shards"

    def on_write_start(self, schema: Any = None) -> None:
        self._job.plan()
        self._is_planned = True

    def write(self, blocks: Iterable[Any], ctx: Any) -> Dict[str, Any]:
        return self._job.write(int(ctx.task_idx), self._rows.samples(self._rows_of(blocks)))

    def on_write_complete(self, write_result: Any) -> None:
        self.report = self._job.commit(write_result.write_returns)

    def on_write_failed(self, error: Exception) -> None:
        if not self._is_planned:
            return
        try:
            self._job.abort()
        except ShardtoolError as left:
            warnings.warn(f"Files of the failed write could not be removed: {left}", stacklevel=2)

    def _rows_of(self, blocks: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
        for block in blocks:
            accessor = BlockAccessor.for_block(block)
            if accessor.num_rows() == 0:
                continue
            self._rows.check(accessor.column_names())
            yield from accessor.iter_rows(public_row_format=True)
