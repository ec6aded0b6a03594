"""Batches for Lightning, whose checkpoints then have the position of the loader.

data = shardtool.lightning.DataModule(
    train=shardtool.iterable_dataset("shards/train", global_batch_size=256, transform=transform, seed=42),
    val=shardtool.iterable_dataset("shards/val", global_batch_size=256, transform=eval_transform, shuffle=False),
)
trainer.fit(model, data, ckpt_path=...)
"""

from __future__ import annotations

from importlib import import_module, util
from typing import Any, Dict, Iterator, Mapping, Optional

from .errors import OptionError, warn
from .torch_dataset import ShardDataset

# The same framework has two names; a Trainer takes modules of its own alone.
_lightning: Any = import_module("lightning.pytorch" if util.find_spec("lightning") else "pytorch_lightning")


class DataModule(_lightning.LightningDataModule):  # type: ignore[misc]
    """Datasets of ``shardtool.iterable_dataset(...)`` for a Lightning Trainer.

    ``train`` is one dataset; ``val``, ``test`` and ``predict`` may also be lists or dictionaries of them. Each process
    reads its own part, with the strategies ddp, ddp_spawn and ddp_fork too. Batches have the attributes of
    :class:`shardtool.Batch`; rows that only pad the end of an epoch are not ``batch.valid``.

    A checkpoint has the state of ``train``: a run that resumes from it continues with the next batch, with any number
    of devices that makes batches of as many rows over all of them (``global_batch_size``).
    """

    def __init__(
        self, train: Optional[ShardDataset[Any, Any]] = None, val: Any = None, test: Any = None, predict: Any = None
    ) -> None:
        super().__init__()
        if train is not None and not isinstance(train, ShardDataset):
            raise OptionError(
                f"train is of shardtool.iterable_dataset(...), not {type(train).__name__}: give one dataset, or a "
                "shardtool.Mixture of several locations."
            )
        for name, datasets in (("train", train), ("val", val), ("test", test), ("predict", predict)):
            for dataset in _each(datasets):
                if isinstance(dataset, ShardDataset) and dataset._make.keywords.get("epochs_per_loop") not in (None, 1):
                    raise OptionError(f"In Lightning a loop is one epoch: leave out epochs_per_loop of {name}.")
        self._train, self._val, self._test, self._predict = train, val, test, predict
        self._is_loaded = False

    def train_dataloader(self) -> Any:
        epoch = self.trainer.current_epoch
        if self._train is not None and not self._is_loaded and epoch > 0 and not self._train.loader._has_delivered:
            # A checkpoint of other data, or the weights of a run that was stopped.
            self._train.set_epoch(epoch)
            if self.trainer.fit_loop.epoch_loop.batch_progress.current.ready > 0:
                warn("The checkpoint has no state of this DataModule, so its epoch starts again from the first batch.")
        return [] if self._train is None else self._train

    def val_dataloader(self) -> Any:
        return [] if self._val is None else self._val

    def test_dataloader(self) -> Any:
        return [] if self._test is None else self._test

    def predict_dataloader(self) -> Any:
        return [] if self._predict is None else self._predict

    def state_dict(self) -> Dict[str, Any]:
        return {} if self._train is None else {"train": self._train.state_dict()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        saved = state_dict.get("train")
        if saved is None or self._train is None:
            return
        rows = int(self._train.loader.info()["global_batch_size"])
        if saved.get("globalBatch", rows) != rows:
            raise OptionError(
                f"The checkpoint has batches of {saved['globalBatch']} rows over all devices, and this run has {rows}, "
                "so Lightning's count of batches does not fit: make the dataset with "
                f"global_batch_size={saved['globalBatch']} in place of batch_size."
            )
        self._train.load_state_dict(saved)
        self._is_loaded = True

    def teardown(self, stage: str) -> None:
        """Ends the readers. They start again when a loop begins."""
        for datasets in (self._train, self._val, self._test, self._predict):
            for dataset in _each(datasets):
                if isinstance(dataset, ShardDataset):
                    dataset.close()


def _each(datasets: Any) -> Iterator[Any]:
    if isinstance(datasets, Mapping):
        datasets = list(datasets.values())
    yield from datasets if isinstance(datasets, (list, tuple)) else [datasets]
