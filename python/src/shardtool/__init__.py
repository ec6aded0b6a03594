"""Streams shuffled, decoded batches of images out of shards.

loader = shardtool.Loader("shards/", batch_size=256, transform="train224", seed=42)
for epoch in range(90):
    loader.set_epoch(epoch)
    for images, labels in loader:
        ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Union

from .batch import Batch
from .dataset import Dataset, Sample
from .errors import (
    BadSampleError,
    FileError,
    ForkedLoaderError,
    LoopEndedError,
    OptionError,
    ReaderError,
    ShardtoolError,
    StateError,
    UnfinishedPackError,
)
from .loader import Loader
from .location import Location
from .mixture import Mixture
from .options import LoaderOptions, WriterOptions
from .writer import Writer

if TYPE_CHECKING:
    from typing import Literal

    from typing_extensions import Unpack

    from .options import LoaderArguments
    from .torch_dataset import ShardDataset

__version__ = "0.1.0"

__all__ = [
    "BadSampleError",
    "Batch",
    "Dataset",
    "FileError",
    "ForkedLoaderError",
    "Loader",
    "LoaderOptions",
    "LoopEndedError",
    "Mixture",
    "OptionError",
    "ReaderError",
    "Sample",
    "ShardtoolError",
    "StateError",
    "UnfinishedPackError",
    "Writer",
    "WriterOptions",
    "iterable_dataset",
]


def iterable_dataset(
    location: Union[Location, Mixture],
    *,
    output: Literal["torch", "numpy", "dlpack"] = "torch",
    **options: Unpack[LoaderArguments],
) -> ShardDataset:
    """A torch IterableDataset of whole batches, for ``DataLoader(dataset, batch_size=None)``. Options as of Loader."""
    from .torch_dataset import ShardDataset

    return ShardDataset(Loader(location, output=output, **options))
