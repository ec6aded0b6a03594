"""For code that insists on torch.utils.data.IterableDataset."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping

from torch.utils.data import IterableDataset, get_worker_info

from .batch import Batch
from .errors import OptionError
from .loader import Loader


class ShardDataset(IterableDataset[Batch]):
    """A :class:`Loader` as an IterableDataset of whole batches: ``DataLoader(dataset, batch_size=None)``."""

    def __init__(self, loader: Loader) -> None:
        super().__init__()
        self.loader = loader

    def __iter__(self) -> Iterator[Batch]:
        if get_worker_info() is not None:  # type: ignore[no-untyped-call, unused-ignore]
            raise OptionError("The loader has workers of its own: use num_workers=0 in the DataLoader around it.")
        return iter(self.loader)

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
