"""A torch.utils.data.IterableDataset for code that requires one."""

from __future__ import annotations

import os
from functools import partial
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Callable, Dict, Generic, Iterator, List, Mapping, NamedTuple, Optional

import torch
from torch.utils.data import IterableDataset, get_worker_info

from .attributes import KnownAttributes
from .batch import Array, Batch, Images
from .errors import OptionError, warn
from .loader import Loader
from .wrappers import Share, looping_caller, options_of_share, share_of_caller, skipping_caller

if TYPE_CHECKING:
    from .options import Transform


class WholeBatch(Generic[Array, Images]):
    """A :class:`Batch` that is not a tuple, because torch converts tuples to plain lists without attributes.

    It unpacks like the batch (``images, labels = batch``) and has all of its attributes: ``valid``, ``fields``,
    ``masks``, ``mix``, ``epoch``. A DataLoader with ``pin_memory=True``, and frameworks that move batches to a device,
    call the two methods below.
    """

    if TYPE_CHECKING:
        images: Images
        labels: Array
    else:
        __class_getitem__ = classmethod(GenericAlias)

    def __init__(self, batch: Batch[Array, Images]) -> None:
        self._batch = batch

    def __iter__(self) -> Iterator[Any]:
        return iter(self._batch)

    def __len__(self) -> int:
        return len(self._batch)

    def __getitem__(self, place: Any) -> Any:
        return self._batch[place]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._batch, name)

    def to(self, *where: Any, **how: Any) -> WholeBatch[Array, Images]:
        """The batch with all of its tensors moved, like ``Tensor.to``."""
        return self._each(lambda tensor: tensor.to(*where, **how))

    def pin_memory(self, *device: Any) -> WholeBatch[Array, Images]:
        """The batch with all of its tensors copied into page-locked memory."""
        return self._each(lambda tensor: tensor.pin_memory(*device))

    def _each(self, move: Callable[[torch.Tensor], torch.Tensor]) -> WholeBatch[Array, Images]:
        batch = self._batch
        values = {name: _moved(value, move) for name, value in batch.__dict__.items()}
        # Without images, the first part of a batch is the same object as its fields.
        parts = [values["fields"] if part is batch.fields else _moved(part, move) for part in batch]
        moved: Batch[Array, Images] = Batch(parts)
        moved.__dict__.update(values)
        return WholeBatch(moved)


def _collect(batches: Any, *, collate_fn_map: Any = None) -> Any:
    """Replaces torch's message about types that it cannot collate."""
    raise OptionError(
        "The dataset already yields whole batches, but this DataLoader would batch them again: use "
        "DataLoader(dataset, batch_size=None), and set batch_size=... for the dataset."
    )


# torch before 2.0 has no such table.
getattr(torch.utils.data._utils.collate, "default_collate_fn_map", {})[WholeBatch] = _collect


def _moved(value: Any, move: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return move(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_moved(one, move) for one in value))
    if isinstance(value, Mapping):
        return {name: _moved(one, move) for name, one in value.items()}
    if isinstance(value, list):
        return [_moved(one, move) for one in value]
    return value


class DispatchedBatch(NamedTuple):
    """The form in which Accelerate sends a batch from one process to the others. It supports only tensors and tuples of
    them."""

    images: Any
    labels: Any


#: Options whose results are more than images and labels.
_MORE_THAN_TENSORS = (
    "with_keys",
    "fields",
    "images",
    "extra_images",
    "masks",
    "annotations",
    "mix",
    "aspect_buckets",
    "views",
)


def may_skip_rows(options: Mapping[str, Any]) -> bool:
    """Whether bad samples leave rows that are not ``valid``, with these options of a loader."""
    if options.get("on_bad") == "replace":
        # A sample at which the function fails is not replaced.
        return options.get("python_transform") is not None
    return options.get("on_bad") == "skip"


class _WholeBatches(Generic[Array, Images]):
    """One loop. The dataset holds its state."""

    def __init__(self, batches: Iterator[Batch[Array, Images]], share: Optional[Share]) -> None:
        self._batches = batches
        self._share = share

    def __iter__(self) -> _WholeBatches[Array, Images]:
        return self

    def __next__(self) -> Any:
        batch = next(self._batches)
        if self._share is None:
            return WholeBatch(batch)
        if self._share.receivers > 1 and batch.batch_index == 0:
            warn(
                f"Accelerate reads this dataset in one process for all {self._share.receivers}, which takes longer "
                "than if each read its own part: use dispatch_batches=False."
            )
        whole = WholeBatch(batch)
        if self._share.receivers > 1:
            # Bytes are sent in memory order, and the other processes read them as contiguous tensors.
            whole = whole._each(torch.Tensor.contiguous)
        return DispatchedBatch(*whole) if self._share.is_sent else whole


class ShardDataset(KnownAttributes, IterableDataset[WholeBatch[Array, Images]], Generic[Array, Images]):
    """A :class:`Loader` as an IterableDataset of whole batches: ``DataLoader(dataset, batch_size=None)``.

    It may be pickled, and used in a forked process. Each process has its own loader, which continues with the next
    epoch of the original process. The rank of a process is determined when a loop begins. Accelerate, and the Trainer
    of transformers, may wrap the DataLoader: each sample still occurs once.
    """

    _MADE_WITH = Loader._MADE_WITH

    def __init__(self, make: partial[Loader[Array, Images]]) -> None:
        super().__init__()
        self._make = make
        self._set_up(None, None, [])

    def _set_up(self, take_up: Any, epoch: Optional[int], transforms: List[Dict[str, Any]]) -> None:
        self._owner = os.getpid()
        self._loader: Loader[Array, Images] = self._make()
        self._loader._take_up, self._loader._epoch, self._loader._transforms = take_up, epoch, transforms
        #: True if a state was loaded and no loop has begun with it yet.
        self._is_resumed = False

    @property
    def loader(self) -> Loader[Array, Images]:
        """The loader of this process."""
        if self._owner != os.getpid():
            self._set_up(self._loader._take_up, self._loader._epoch, self._loader._transforms)
        return self._loader

    def __getstate__(self) -> Any:
        return (self._make, self._loader._take_up, self._loader._epoch, self._loader._transforms)

    def __setstate__(self, state: Any) -> None:
        self._make, take_up, epoch, transforms = state
        self._set_up(take_up, epoch, transforms)

    def __iter__(self) -> Iterator[WholeBatch[Array, Images]]:
        if get_worker_info() is not None:  # type: ignore[no-untyped-call, unused-ignore]
            raise OptionError("The loader has its own workers: set num_workers=0 in the DataLoader around it.")
        is_resumed, self._is_resumed = self._is_resumed, False
        if is_resumed and skipping_caller(self) is not None:
            raise OptionError(
                "This dataset already continues after the batches of its loaded state, and skip_first_batches would "
                "skip as many again: remove one of the two. shardtool.accelerate handles both."
            )
        share = share_of_caller(self, is_loop=True)
        if share is not None and share.is_sent:
            self._check_tensors()
        self._read(share)
        return _WholeBatches(iter(self.loader), share)

    def __len__(self) -> int:
        share = share_of_caller(self)
        if share is not None:
            self._read(share)
        return len(self.loader)

    def _read(self, share: Optional[Share]) -> None:
        """Makes the loader read the part of the dataset that a framework reads in this process."""
        self.loader._share = options_of_share(share, self._make.keywords)

    def _check_tensors(self) -> None:
        options = self._make.keywords
        more = [name for name in _MORE_THAN_TENSORS if options.get(name)]
        for name, value in (("transform", "raw"), ("collate", "list")):
            if options.get(name) == value:
                more.append(f"{name}={value!r}")
        if may_skip_rows(options):
            more.append(f"on_bad={options['on_bad']!r}")
        if options.get("output") != "torch":
            more.append(f"output={options.get('output')!r}")
        if more:
            raise OptionError(
                f"Accelerate sends only images and labels from one process to the others: remove "
                f"{', '.join(more)}, use dispatch_batches=False, or give the DataLoader a collate_fn that makes "
                "tensors."
            )

    @property
    def classes(self) -> List[str]:
        return self.loader.classes

    def set_epoch(self, epoch: int, transform: Optional[Transform] = None) -> None:
        share_of_caller(self)
        wrapper = looping_caller(self) if self._is_resumed else None
        if wrapper is None:
            self.loader.set_epoch(epoch, transform)
        else:
            # Accelerate counts its own loops, from 0 on: the epoch of the loaded state stays.
            wrapper.iteration = self.loader.info()["epoch"]

    def state_dict(self) -> Dict[str, Any]:
        return self.loader.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        self.loader.load_state_dict(state_dict)
        self._is_resumed = True

    def close(self) -> None:
        self.loader.close()
