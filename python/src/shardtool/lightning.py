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

# The framework has two package names. A Trainer accepts only modules of its own package.
_lightning: Any = import_module("lightning.pytorch" if util.find_spec("lightning") else "pytorch_lightning")


class DataModule(_lightning.LightningDataModule):  # type: ignore[misc]
    """Datasets of ``shardtool.iterable_dataset(...)`` for a Lightning Trainer.

    ``train`` is one dataset; ``val``, ``test`` and ``predict`` may also be lists or dictionaries of them. Each process
    reads its own part, with the strategies ddp, ddp_spawn and ddp_fork too. Batches have the attributes of
    :class:`shardtool.Batch`; rows that only pad the end of an epoch are not ``batch.valid``.

    A checkpoint has the state of ``train``: a run that resumes from it continues with the next batch, with any number
    of devices for which batches have the same number of rows over all devices (``global_batch_size``).
    """

    def __init__(
        self, train: Optional[ShardDataset[Any, Any]] = None, val: Any = None, test: Any = None, predict: Any = None
    ) -> None:
        super().__init__()
        if train is not None and not isinstance(train, ShardDataset):
            raise OptionError(
                f"train must be a shardtool.iterable_dataset(...), not a {type(train).__name__}. To train on several "
                "locations, make it of a shardtool.Mixture."
            )
        for name, datasets in (("train", train), ("val", val), ("test", test), ("predict", predict)):
            for dataset in _each(datasets):
                if isinstance(dataset, ShardDataset) and dataset._make.keywords.get("epochs_per_loop") not in (None, 1):
                    raise OptionError(f"In Lightning a loop is one epoch: remove epochs_per_loop of {name}.")
        self._train, self._val, self._test, self._predict = train, val, test, predict
        #: The state of load_state_dict, until a loop begins.
        self._saved: Mapping[str, Any] = {}
        #: The epoch of ``train`` in Lightning's epoch 0.
        self._first_epoch = self._option_epoch()
        #: Lightning's number of the epoch whose loop began last.
        self._epoch: Optional[int] = None

    def _option_epoch(self) -> int:
        return 0 if self._train is None else int(self._train._make.keywords.get("epoch") or 0)

    def setup(self, stage: str) -> None:
        """Another Trainer begins with the first epoch again. A checkpoint is loaded after this call."""
        if stage == "fit":
            self._saved, self._first_epoch, self._epoch = {}, self._option_epoch(), None

    def train_dataloader(self) -> Any:
        if self._train is None:
            return []
        if getattr(self.trainer, "overfit_batches", 0) and self._train._make.keywords.get("shuffle") is not False:
            warn(
                "overfit_batches gets other samples in each epoch of a shuffled dataset: make train with shuffle=False."
            )
        return _TrainBatches(self, self._train)

    def val_dataloader(self) -> Any:
        return [] if self._val is None else self._val

    def test_dataloader(self) -> Any:
        return [] if self._test is None else self._test

    def predict_dataloader(self) -> Any:
        return [] if self._predict is None else self._predict

    def state_dict(self) -> Dict[str, Any]:
        if self._train is None:
            return {}
        if self._epoch is None and not self._saved:
            # No loop has begun: a run from here begins with the first epoch. The dataset may have the position of the
            # previous Trainer.
            return {}
        # Until a loop begins, the state is the one that was loaded.
        epoch = self._saved.get("epoch") if self._saved else self._epoch
        return {"train": self._train.state_dict(), "epoch": epoch}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        saved = state_dict.get("train")
        if saved is None or self._train is None:
            return
        rows = int(self._train.loader.info()["global_batch_size"])
        if saved.get("globalBatch", rows) != rows:
            raise OptionError(
                f"The checkpoint has batches of {saved['globalBatch']} rows over all devices, but this run has {rows}, "
                "so Lightning's batch count would be wrong: create the dataset with "
                f"global_batch_size={saved['globalBatch']} instead of batch_size."
            )
        self._train.load_state_dict(saved)
        self._saved = state_dict

    def _begin_epoch(self) -> None:
        """Called when a loop over ``train`` requests its first batch.

        A checkpoint that was made at the end of an epoch which ``limit_train_batches`` cut short has a state in the
        middle of it. Lightning continues with the next epoch, so the loader does too.
        """
        loop = self.trainer.fit_loop
        self._epoch = epoch = int(loop.epoch_progress.current.processed)
        saved, self._saved = self._saved, {}
        dataset = self._train
        assert dataset is not None
        if saved:
            # In earlier versions, a checkpoint that was made before the first batch has no epoch.
            of_state = epoch if saved.get("epoch") is None else saved["epoch"]
            self._first_epoch = saved["train"]["epoch"] - of_state
            if epoch == of_state:
                # Continues after the batch of the state.
                return
        elif loop.epoch_loop.batch_progress.current.ready > 0:
            warn("The checkpoint has no state of this DataModule, so its epoch starts again from the first batch.")
        dataset.set_epoch(self._first_epoch + epoch)

    def teardown(self, stage: str) -> None:
        """Ends the readers. They start again when a loop begins."""
        for datasets in (self._train, self._val, self._test, self._predict):
            for dataset in _each(datasets):
                if isinstance(dataset, ShardDataset):
                    dataset.close()


class _TrainBatches:
    """The batches of ``train``. Lightning calls ``iter`` early, so an epoch begins with its first batch."""

    def __init__(self, module: DataModule, dataset: ShardDataset[Any, Any]) -> None:
        self._module = module
        self._dataset = dataset

    def __iter__(self) -> Iterator[Any]:
        self._module._begin_epoch()
        yield from self._dataset

    def __len__(self) -> int:
        return len(self._dataset)

    def state_dict(self) -> Dict[str, Any]:
        """Nothing: the state is the module's. Lightning warns of batches that have no state at all."""
        return {}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """The module has loaded the state."""


def _each(datasets: Any) -> Iterator[Any]:
    if isinstance(datasets, Mapping):
        datasets = list(datasets.values())
    yield from datasets if isinstance(datasets, (list, tuple)) else [datasets]
