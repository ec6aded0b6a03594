"""Batches for the Trainer of Hugging Face's transformers: each process reads its own part, and resuming is exact.

trainer = shardtool.transformers.ShardTrainer(
    model, args,
    train_dataset=shardtool.iterable_dataset("shards/train", transform=transform, seed=42),
    eval_dataset=shardtool.iterable_dataset("shards/val", transform=eval_transform, shuffle=False),
)
trainer.train(resume_from_checkpoint=...)
"""

from __future__ import annotations

import functools
import math
from importlib import import_module
from typing import Any, Dict, Optional, Tuple

import torch

from .accelerate import PreparedLoader
from .errors import OptionError
from .torch_dataset import ShardDataset, may_skip_rows

_transformers: Any = import_module("transformers")
_callbacks: Any = import_module("transformers.trainer_callback")

#: The label that the losses of torch and the metrics of transformers ignore.
IGNORED_LABEL = -100

#: Mixes after which an image belongs to two classes. After other mixes, rows keep their own labels.
_MIXES_OF_LABELS = ("mixup", "cutmix", "timm_mixup")


class ShardTrainerMixin:
    """For a custom Trainer: ``class MyTrainer(ShardTrainerMixin, Trainer)``.

    ``train_dataset`` and ``eval_dataset`` (or each of a dict of them) may be of ``shardtool.iterable_dataset(...)``.
    Rows of a batch are those of ``per_device_train_batch_size`` and ``per_device_eval_batch_size``. The model gets
    ``pixel_values`` and ``labels``; rows that only pad the end of an epoch have the label -100. With a
    ``data_collator``, it gets the result of calling that with a whole batch (see :class:`shardtool.Batch`).

    A checkpoint has the position of the loader. ``train(resume_from_checkpoint=...)`` continues with the next batch
    without reading those before it, with any number of processes for which batches have the same number of rows.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        #: Loaders by the id, the rows and the use of the dataset. The dataset is kept too, so that its id stays unique.
        self._prepared_loaders: Dict[Tuple[int, int, bool], Tuple[Any, PreparedLoader]] = {}
        super().__init__(*args, **kwargs)
        self.add_callback(ShardState())  # type: ignore[attr-defined]

    def get_train_dataloader(self) -> Any:
        dataset = self.train_dataset  # type: ignore[attr-defined]
        if not isinstance(dataset, ShardDataset):
            return super().get_train_dataloader()  # type: ignore[misc]
        return self._prepared(dataset, self._train_batch_size, is_training=True)  # type: ignore[attr-defined]

    def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
        dataset = self.eval_dataset if eval_dataset is None else eval_dataset  # type: ignore[attr-defined]
        if isinstance(dataset, str):
            dataset = self.eval_dataset[dataset]  # type: ignore[attr-defined]
        if not isinstance(dataset, ShardDataset):
            return super().get_eval_dataloader(eval_dataset)  # type: ignore[misc]
        return self._prepared(dataset, self.args.eval_batch_size)  # type: ignore[attr-defined]

    def get_test_dataloader(self, test_dataset: Any) -> Any:
        if not isinstance(test_dataset, ShardDataset):
            return super().get_test_dataloader(test_dataset)  # type: ignore[misc]
        return self._prepared(test_dataset, self.args.eval_batch_size)  # type: ignore[attr-defined]

    def prediction_step(self, *args: Any, **kwargs: Any) -> Any:
        """Trainer's step of an evaluation, whose loss is the mean over the rows of this process that count.

        Trainer averages these losses, each as often as its process has such rows. By default it would divide by the
        rows of all processes instead, which is another number where the last batch is not divided evenly.
        """
        settings = self.args  # type: ignore[attr-defined]
        across = getattr(settings, "average_tokens_across_devices", False)
        if not across or settings.world_size == 1:
            return super().prediction_step(*args, **kwargs)  # type: ignore[misc]
        settings.average_tokens_across_devices = False
        try:
            return super().prediction_step(*args, **kwargs)  # type: ignore[misc]
        finally:
            settings.average_tokens_across_devices = True

    def _prepared(self, dataset: ShardDataset[Any, Any], rows: int, is_training: bool = False) -> PreparedLoader:
        """The loader of a dataset. It is kept for the next evaluation, with its reader."""
        args = self.args  # type: ignore[attr-defined]
        accelerator = self.accelerator  # type: ignore[attr-defined]
        key = (id(dataset), rows, is_training)
        if key not in self._prepared_loaders:
            options = dict(dataset._make.keywords)
            _check_rows(options, rows, args.world_size, "train" if is_training else "eval")
            if is_training:
                _check_order(options, args)
            options.pop("global_batch_size", None)
            options["batch_size"] = rows * args.world_size if accelerator.split_batches else rows
            if args.dataloader_drop_last:
                options["last_batch"] = "drop"
            make = functools.partial(dataset._make.func, *dataset._make.args, **options)
            collator = self.data_collator  # type: ignore[attr-defined]
            if collator is _transformers.default_data_collator:
                collator = for_model
                if options.get("labels") is not None and may_skip_rows(options):
                    replace = 'use on_bad="replace", or ' if options["on_bad"] == "skip" else ""
                    raise OptionError(
                        f"With labels=..., a loss cannot ignore the rows that on_bad={options['on_bad']!r} leaves "
                        f"empty: {replace}pass a data_collator that removes the rows without batch.valid."
                    )
            self._prepared_loaders[key] = (dataset, PreparedLoader(accelerator, make, collator))
        # Trainer sets another function at the end of each evaluation.
        gather = accelerator.gather_for_metrics
        if getattr(args, "eval_use_gather_object", False):
            gather = functools.partial(gather, use_gather_object=True)
        self.gather_function = functools.partial(_gather_rows, accelerator, gather, args.eval_batch_size)
        return self._prepared_loaders[key][1]


class ShardTrainer(ShardTrainerMixin, _transformers.Trainer):  # type: ignore[misc]
    """``transformers.Trainer`` for datasets of ``shardtool.iterable_dataset(...)``. See :class:`ShardTrainerMixin`."""


def _gather_rows(accelerator: Any, gather: Any, rows: int, values: Any) -> Any:
    """``gather(values)`` for a Trainer, which repeats the loss of each batch ``rows`` times.

    An incomplete last batch has fewer rows if it is not padded, as with one process. Its loss counts once for each.
    """
    active = accelerator.gradient_state.active_dataloader
    if isinstance(active, PreparedLoader) and active.end_of_dataloader:
        of_batch = len(active._valid)
        if isinstance(values, torch.Tensor) and values.ndim == 1 and len(values) == rows > of_batch:
            values = values[:of_batch]
    return gather(values)


def for_model(batch: Any) -> Dict[str, Any]:
    """``pixel_values`` and ``labels`` of a batch, as models of transformers take them.

    Class numbers of rows that do not count become :data:`IGNORED_LABEL`. Labels of the loader's option ``labels`` are
    float, and no float is ignored by a loss, so rows that pad keep the labels of the samples that they repeat. Raises
    OptionError for batches that cannot be described by one image and one label in each row.
    """
    if not isinstance(batch.images, torch.Tensor) or len(batch.images) != len(batch.valid):
        raise OptionError(
            "The model gets pixel_values, a tensor with one image for each sample, which this dataset does not "
            "yield: pass a data_collator, which is called with the whole batch and returns the arguments of the model."
        )
    if batch.mix is not None and batch.mix.name in _MIXES_OF_LABELS:
        raise OptionError(
            f"The model would get the labels of single images, but mix={batch.mix.name!r} mixes two: pass a "
            "data_collator that takes batch.soft_labels (with num_classes of mix) or batch.mix, or remove mix."
        )
    if batch.labels.is_floating_point():
        return {"pixel_values": batch.images, "labels": batch.labels}
    labels = torch.where(batch.valid.to(batch.labels.device), batch.labels, IGNORED_LABEL)
    return {"pixel_values": batch.images, "labels": labels}


class ShardState(_callbacks.TrainerCallback, _callbacks.ExportableState):  # type: ignore[misc]
    """Saves the loader's state in each checkpoint, and loads it when training resumes from a checkpoint."""

    def __init__(self) -> None:
        self._loader: Optional[PreparedLoader] = None

    def state(self) -> Dict[str, Any]:
        """The state for the file ``trainer_state.json`` of a checkpoint."""
        return {"args": {}, "attributes": {"saved": None if self._loader is None else self._loader.state_dict()}}

    def on_train_begin(self, args: Any, state: Any, control: Any, train_dataloader: Any = None, **more: Any) -> None:
        self._loader = train_dataloader if isinstance(train_dataloader, PreparedLoader) else None
        if self._loader is None or state.global_step == 0 or args.ignore_data_skip:
            return
        exported = state.stateful_callbacks.get("ShardState")
        saved = exported["attributes"]["saved"] if isinstance(exported, dict) else None
        updates = max(math.ceil(len(self._loader) / args.gradient_accumulation_steps), 1)
        if saved is None:
            # A checkpoint of another Trainer has no state, so the batches that it counted are skipped.
            self._loader.set_epoch(state.global_step // updates)
            return
        rows = self._loader.global_batch_size
        if saved.get("globalBatch", rows) != rows:
            raise OptionError(
                f"The checkpoint has batches of {saved['globalBatch']} rows over all processes, but this training has "
                f"{rows}, so Trainer's step count would be wrong: set per_device_train_batch_size so that "
                f"{args.world_size} processes make {saved['globalBatch']} rows."
            )
        self._loader.load_state_dict(saved)


def _check_order(options: Dict[str, Any], args: Any) -> None:
    """Raises OptionError if the Trainer was asked for an order of training that only its own samplers have."""
    strategy = getattr(args, "train_sampling_strategy", "random")
    if getattr(args, "group_by_length", False):
        # The option of transformers before 5.
        strategy = "group_by_length"
    if strategy == "sequential" and options.get("shuffle") is not False:
        raise OptionError('For train_sampling_strategy="sequential", create the dataset with shuffle=False.')
    if strategy not in ("random", "sequential"):
        raise OptionError(
            f"The dataset determines the order of its samples, so {strategy} would have no effect: remove it."
        )


def _check_rows(options: Dict[str, Any], rows: int, ranks: int, phase: str) -> None:
    """Raises OptionError if the dataset was given other rows than the Trainer."""
    for name, wanted in (("batch_size", rows), ("global_batch_size", rows * ranks)):
        if options.get(name) not in (None, wanted):
            raise OptionError(
                f"The dataset was made with {name}={options[name]}, but Trainer has {rows} rows on each of {ranks} "
                f"processes: remove {name}, and set per_device_{phase}_batch_size."
            )
