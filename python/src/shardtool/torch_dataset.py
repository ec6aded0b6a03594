"""For code that insists on torch.utils.data.IterableDataset."""

from __future__ import annotations

from types import GenericAlias
from typing import TYPE_CHECKING, Any, Callable, Dict, Generic, Iterator, List, Mapping

import torch
from torch.utils.data import IterableDataset, get_worker_info

from .batch import Array, Batch, Images, Mix
from .errors import OptionError
from .loader import Loader


class WholeBatch(Generic[Array, Images]):
    """A :class:`Batch` that is no tuple, since torch makes a plain list of those and drops what a list cannot have.

    It unpacks as the batch does (``images, labels = batch``) and has all of its attributes: ``valid``, ``fields``,
    ``masks``, ``mix``, ``epoch``. A DataLoader's ``pin_memory=True``, and what moves batches to a device, call the two
    methods here.
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
        """The batch with all of its tensors moved, as by ``Tensor.to``."""
        return self._each(lambda tensor: tensor.to(*where, **how))

    def pin_memory(self, *device: Any) -> WholeBatch[Array, Images]:
        """The batch with all of its tensors copied into page-locked memory."""
        return self._each(lambda tensor: tensor.pin_memory(*device))

    def _each(self, move: Callable[[torch.Tensor], torch.Tensor]) -> WholeBatch[Array, Images]:
        batch = self._batch
        moved: Batch[Array, Images] = Batch(_moved(value, move) for value in batch)
        for name, value in batch.__dict__.items():
            setattr(moved, name, _moved(value, move))
        return WholeBatch(moved)


def _moved(value: Any, move: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return move(value)
    if isinstance(value, Mix):
        return value._replace(other_labels=_moved(value.other_labels, move))
    if isinstance(value, Mapping):
        return {name: _moved(one, move) for name, one in value.items()}
    return value


class _WholeBatches(Generic[Array, Images]):
    """One loop. It has no state of its own: that is the dataset's."""

    def __init__(self, batches: Iterator[Batch[Array, Images]]) -> None:
        self._batches = batches

    def __iter__(self) -> _WholeBatches[Array, Images]:
        return self

    def __next__(self) -> WholeBatch[Array, Images]:
        return WholeBatch(next(self._batches))


class ShardDataset(IterableDataset[WholeBatch[Array, Images]], Generic[Array, Images]):
    """A :class:`Loader` as an IterableDataset of whole batches: ``DataLoader(dataset, batch_size=None)``."""

    def __init__(self, loader: Loader[Array, Images]) -> None:
        super().__init__()
        self.loader = loader

    def __iter__(self) -> Iterator[WholeBatch[Array, Images]]:
        if get_worker_info() is not None:  # type: ignore[no-untyped-call, unused-ignore]
            raise OptionError("The loader has workers of its own: use num_workers=0 in the DataLoader around it.")
        return _WholeBatches(iter(self.loader))

    def __len__(self) -> int:
        return len(self.loader)

    @property
    def classes(self) -> List[str]:
        return self.loader.classes

    def set_epoch(self, epoch: int) -> None:
        self.loader.set_epoch(epoch)

    def state_dict(self) -> Dict[str, Any]:
        return self.loader.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        self.loader.load_state_dict(state_dict)

    def close(self) -> None:
        self.loader.close()
