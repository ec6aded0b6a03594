"""Ranges of samples for tasks of a distributed engine, and reading one of them."""

from __future__ import annotations

import io
import json
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple, Union

import numpy as np

from .dataset import Dataset
from .errors import ShardtoolError

#: Number of samples per request, and per block: enough to make requests cheap, and few enough to fit in memory.
ROWS_AT_ONCE = 64


def ranges_of(shards: Sequence[int], samples: int, count: int) -> List[Tuple[int, int]]:
    """At most ``count`` ranges ``(start, stop)`` that together cover ``samples`` samples once, in order.

    ``shards``: the number of samples of each shard. A range consists of whole shards if there are at least as many
    shards as ranges. A dataset that shows only some samples of its shards is cut evenly.
    """
    count = max(1, min(count, samples))
    cuts = [samples * number // count for number in range(count + 1)]
    boundaries = np.cumsum([0, *shards])
    if len(shards) >= count and boundaries[-1] == samples:
        cuts = [int(boundaries[np.abs(boundaries - cut).argmin()]) for cut in cuts]
    return [(start, stop) for start, stop in zip(cuts, cuts[1:]) if start < stop]


class RangeReader:
    """Reads ranges of a dataset, in this process or, pickled, in a task of an engine."""

    def __init__(self, location: Any, options: Mapping[str, Any]) -> None:
        self._dataset: Dataset[Any] = Dataset(location, output="numpy", **options)
        about = self._dataset._reader.about()
        self.samples = int(about["samples"])
        self.shards = [int(count) for count in about["shards"]]
        self._identity = about["identity"]
        self._location = location
        self._dataset.close()

    def read(self, start: int, stop: int) -> Iterator[Dict[str, List[Any]]]:
        """The samples from ``start`` up to ``stop``: lists of ``key``, ``image``, ``label``, and each field.

        Raises :class:`shardtool.ShardtoolError` if the dataset has changed since this object was made.
        """
        try:
            if self._dataset._reader.about()["identity"] != self._identity:
                raise ShardtoolError(f"{self._location} has changed since its tasks were planned; read it again.")
            for first in range(start, stop, ROWS_AT_ONCE):
                samples = self._dataset.__getitems__(range(first, min(stop, first + ROWS_AT_ONCE)))
                columns: Dict[str, List[Any]] = {
                    "key": [sample.key for sample in samples],
                    "image": [sample.image for sample in samples],
                    "label": [sample.label for sample in samples],
                }
                for name in (*samples[0].fields, *samples[0].masks):
                    columns[name] = [sample.fields.get(name, sample.masks.get(name)) for sample in samples]
                yield columns
        finally:
            self._dataset.close()


def plain(value: Any) -> Union[bytes, str, int, float, bool, None]:
    """A value of a field for a column of Arrow: JSON as text, an array as the bytes of an npy file."""
    if isinstance(value, np.ndarray):
        written = io.BytesIO()
        np.save(written, value, allow_pickle=False)
        return written.getvalue()
    if value is None or isinstance(value, (bytes, str, int, float, bool)):
        return value
    return json.dumps(value)
