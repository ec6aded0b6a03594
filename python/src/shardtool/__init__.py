"""Streams shuffled, decoded batches of images from shards.

loader = shardtool.Loader("shards/", batch_size=256, transform="train224", seed=42)
for epoch in range(90):
    loader.set_epoch(epoch)
    for images, labels in loader:
        ...
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, List, Union, overload

from .batch import Batch
from .dataset import Dataset, Sample
from .errors import (
    BadSampleError,
    FileError,
    ForkedLoaderError,
    OptionError,
    PythonTransformError,
    ReaderError,
    ShardtoolError,
    StaleIteratorError,
    StateError,
    UnfinishedPackError,
)
from .foreign_transforms import steps_from
from .loader import Loader
from .location import Location
from .mixture import Mixture
from .options import LoaderOptions, WriterOptions
from .writer import Writer

if TYPE_CHECKING:
    from typing import Literal

    import torch
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from .batch import DLPackArray
    from .options import ListArguments, LoaderArguments, RawArguments, RawListArguments
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
    "Mixture",
    "OptionError",
    "PythonTransformError",
    "ReaderError",
    "Sample",
    "ShardtoolError",
    "StaleIteratorError",
    "StateError",
    "UnfinishedPackError",
    "Writer",
    "WriterOptions",
    "iterable_dataset",
    "steps_from",
]


@overload
def iterable_dataset(
    location: Union[Location, Mixture],
    *,
    collate: Literal["list"],
    transform: Literal["raw"],
    output: Literal["torch", "numpy", "dlpack"] = ...,
    **options: Unpack[RawListArguments],
) -> ShardDataset[Any, Any]: ...


@overload
def iterable_dataset(  # type: ignore[overload-overlap]
    location: Union[Location, Mixture],
    *,
    collate: Literal["list"],
    output: Literal["torch", "numpy", "dlpack"] = ...,
    **options: Unpack[ListArguments],
) -> ShardDataset[Any, List[Any]]: ...


@overload
def iterable_dataset(  # type: ignore[overload-overlap]
    location: Union[Location, Mixture],
    *,
    transform: Literal["raw"],
    output: Literal["torch", "numpy", "dlpack"] = ...,
    **options: Unpack[RawArguments],
) -> ShardDataset[Any, List[bytes]]: ...


@overload
def iterable_dataset(
    location: Union[Location, Mixture],
    *,
    output: Literal["torch"] = ...,
    **options: Unpack[LoaderArguments],
) -> ShardDataset[torch.Tensor]: ...


@overload
def iterable_dataset(
    location: Union[Location, Mixture],
    *,
    output: Literal["numpy"],
    **options: Unpack[LoaderArguments],
) -> ShardDataset[NDArray[Any]]: ...


@overload
def iterable_dataset(
    location: Union[Location, Mixture],
    *,
    output: Literal["dlpack"],
    **options: Unpack[LoaderArguments],
) -> ShardDataset[DLPackArray]: ...


def iterable_dataset(
    location: Union[Location, Mixture],
    *,
    output: Literal["torch", "numpy", "dlpack"] = "torch",
    **options: Unpack[LoaderArguments],
) -> ShardDataset[Any, Any]:
    """A torch IterableDataset of whole batches, for ``DataLoader(dataset, batch_size=None)``. Options as of Loader."""
    from .torch_dataset import ShardDataset

    return ShardDataset(partial(Loader, location, output=output, **options))
