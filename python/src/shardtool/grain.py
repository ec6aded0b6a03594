"""Shards as a data source of Grain: random access by number, with Grain's own shuffle, batches and checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, SupportsIndex

from .dataset import Dataset

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .location import Location
    from .options import DatasetArguments


class ShardSource:
    """A ``RandomAccessDataSource`` of Grain over the samples of ``location``::

        source = shardtool.grain.ShardSource("shards/", transform="train224")
        dataset = grain.MapDataset.source(source).shuffle(seed=42).batch(32)

    ``source[7]`` is a dict: ``image`` (numpy, [h, w, 3]), ``label`` (int, -1 without a class), ``key``, and the
    ``fields`` and ``masks`` that you ask for. Options are those of :class:`shardtool.Dataset`, except ``output``.

    The same index gives the same image if the transform draws no random numbers. Random steps draw other numbers each
    time, so put them into Grain's ``random_map`` if a resumed run must equal an uninterrupted one.

    It can be pickled, and threads may share it. Each process has its own reader, which starts with the first sample.
    """

    def __init__(self, location: Location, **options: Unpack[DatasetArguments]) -> None:
        if "output" in options:
            raise TypeError("A ShardSource always returns numpy arrays; remove output.")
        self.dataset: Dataset[Any] = Dataset(location, output="numpy", **options)

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: SupportsIndex) -> Dict[str, Any]:
        """The sample at ``index``. Raises IndexError, and the errors of :class:`shardtool.Dataset`."""
        sample = self.dataset[index.__index__()]
        return {"image": sample.image, "label": sample.label, "key": sample.key, **sample.fields, **sample.masks}

    def __repr__(self) -> str:
        # Grain puts it into its checkpoints, and compares it when it restores one.
        return f"ShardSource({self.dataset!r})"
