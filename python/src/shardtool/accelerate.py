"""Batches for Hugging Face Accelerate: each process reads its own part, and no batch is sent between processes.

loader = shardtool.accelerate.prepare(accelerator, "shards/", batch_size=64, transform="train224", seed=42)
model, optimizer = accelerator.prepare(model, optimizer)
for images, labels in loader:
    ...
"""

from __future__ import annotations

import os
import weakref
from functools import partial
from importlib import import_module
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Union

import torch

from .errors import OptionError, warn
from .loader import Loader
from .location import Location
from .mixture import Mixture
from .torch_dataset import WholeBatch, may_skip_rows
from .wrappers import skipping_caller

#: Keys of a state whose position is a number of samples. States of mixtures and of buckets have more keys.
_SIMPLE_STATE = {
    *("version", "dataset", "selection", "seed", "epoch", "streams", "blockSamples", "unit", "shuffle", "epochSamples"),
    *("globalBatch", "lastBatch", "position", "decode", "codec"),
}

#: Parallelism in which several processes take the same batch.
_SAME_BATCH = ("tp", "cp", "sp")


def prepare(
    accelerator: Any,
    location: Union[Location, Mixture],
    *,
    collate: Optional[Callable[[Any], Any]] = None,
    checkpoint: bool = True,
    **options: Any,
) -> PreparedLoader:
    """Batches of ``location`` for the process of this ``accelerate.Accelerator``.

    Each process reads its own part of each epoch, whatever ``dispatch_batches`` is. ``batch_size`` is the rows of one
    process; with ``split_batches=True`` of the accelerator, the rows of all processes together, as in Accelerate.
    ``options``: those of :class:`shardtool.Loader`. Batches are on ``accelerator.device`` and have the attributes of
    :class:`shardtool.Batch`. ``collate`` is called with each of them and returns what the loop gets.

    ``checkpoint``: ``accelerator.save_state`` and ``load_state`` save and restore the position of the loader. From now
    on ``accelerator.gather_for_metrics`` removes the rows that only pad the end of an epoch.

    Raises OptionError for options that cannot be combined with the accelerator's.
    """
    loader = PreparedLoader(accelerator, partial(Loader, location, **options), collate)
    if checkpoint:
        accelerator.register_for_checkpointing(loader)
    return loader


class PreparedLoader:
    """A loader that ``accelerator.prepare`` returns as it is. :func:`prepare` makes one.

    ``for batch in loader`` goes through one epoch on this process. The loop is one batch ahead of its caller, since
    Accelerate asks during a batch whether it is the last one. A batch is the caller's own: its memory is not filled
    again while anything refers to it.
    """

    #: For ``accelerate.skip_first_batches``, which makes a DataLoader of :attr:`dataset` with these.
    batch_size = None
    drop_last = False
    num_workers = 0
    prefetch_factor = None

    @staticmethod
    def collate_fn(batch: Any) -> Any:
        """Returns the batch as it is. By default, that DataLoader makes lists of tuples, and tensors of arrays."""
        return batch

    def __init__(
        self, accelerator: Any, make: Callable[..., Loader], collate: Optional[Callable[[Any], Any]] = None
    ) -> None:
        options = _options_of_process(accelerator, dict(getattr(make, "keywords", {})))
        self._device = None
        if accelerator.device_placement and accelerator.device.type != "cpu":
            if accelerator.device.type == "cuda" and options.get("device", "cpu") == "cpu":
                options["device"] = str(accelerator.device)
            else:
                self._device = accelerator.device
        # Not make(**options): a partial keeps the options that the accelerator's replace, such as batch_size.
        self._loader = make.func(*make.args, **options) if isinstance(make, partial) else make(**options)
        self._collate = collate
        self._accelerator = weakref.ref(accelerator)
        self._gradient_state: Any = import_module("accelerate.state").GradientState()
        self._may_skip_rows = may_skip_rows(options)
        #: Whether the current loop has reached its last batch. Accelerate reads this.
        self.end_of_dataloader = False
        #: The number of rows to which Accelerate cuts the last batch; -1: it does not. `valid` removes rows instead.
        self.remainder = -1
        #: bool [n], rows of the current batch that count.
        self._valid: Any = None
        #: The state after the last batch that the loop yielded. None: ask the loader.
        self._state: Optional[Dict[str, Any]] = None
        #: The state of load_state_dict, until a loop begins with it.
        self._loaded: Optional[Dict[str, Any]] = None
        _remove_padding_in_gather(accelerator)

    def __iter__(self) -> Iterator[Any]:
        self._loaded = None
        return self._loop()

    def _loop(self) -> Iterator[Any]:
        self.end_of_dataloader = False
        self._gradient_state._add_dataloader(self)
        try:
            batches = iter(self._loader)
            current = self._receive(batches)
            while current is not None:
                following = self._receive(batches)
                self.end_of_dataloader = following is None
                batch, self._state = current
                self._valid = batch.valid
                yield batch if self._collate is None else self._collate(batch)
                current = following
        finally:
            self._gradient_state._remove_dataloader(self)

    def _receive(self, batches: Iterator[Any]) -> Any:
        """The next batch and the state after it. None at the end of the loop."""
        batch = next(batches, None)
        if batch is None:
            return None
        whole = WholeBatch(batch)
        return whole if self._device is None else whole.to(self._device), self._loader.state_dict()

    def __len__(self) -> int:
        """Batches of a whole epoch on this process."""
        return len(self._loader)

    @property
    def classes(self) -> Any:
        """Names of the classes, in the order of their numbers."""
        return self._loader.classes

    @property
    def dataset(self) -> _Samples:
        """Its length is the number of samples of an epoch, over all processes."""
        return _Samples(self)

    @property
    def global_batch_size(self) -> int:
        """Rows of a batch over all processes."""
        return int(self._loader.info()["global_batch_size"])

    def set_epoch(self, epoch: int) -> None:
        """The next loop begins with this epoch: at its start, or at the position of a loaded state in it."""
        if self._loaded is not None and self._loaded["epoch"] != epoch:
            if self._loader.state_dict()["epoch"] != epoch and not self._is_behind(epoch):
                warn(
                    f"set_epoch({epoch}) leaves the state that was loaded, which is in epoch "
                    f"{self._loaded['epoch']}: begin the loop over epochs with that epoch, or remove set_epoch to "
                    "continue where the state was taken."
                )
            self._loaded = None
        self._state = None
        self._loader.set_epoch(epoch)

    def _is_behind(self, epoch: int) -> bool:
        """Whether the state that was loaded is at the end of the epoch before."""
        return self._loaded is not None and self._loaded["epoch"] + 1 == epoch and self._rest_of_loaded() == 0

    def _rest_of_loaded(self) -> int:
        """Number of samples that remain in the epoch of the loaded state."""
        assert self._loaded is not None
        return max(0, int(self._loader.info()["samples"]) - int(self._loaded.get("position", 0)))

    def state_dict(self) -> Dict[str, Any]:
        """The position of the run after the batch that the loop yielded last: plain data, the same on all processes."""
        return self._loader.state_dict() if self._state is None else dict(self._state)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """The next loop continues where :meth:`state_dict` was taken, whatever the number of processes and rows."""
        self._loader.load_state_dict(state_dict)
        self._loaded = dict(state_dict)
        self._state = None

    def close(self) -> None:
        """Ends the reader. The loader may be used again."""
        self._loader.close()

    def _skip(self, batches: int) -> int:
        """Continues after the first ``batches`` batches of the epoch. Returns how many still have to be read and
        dropped.

        If a state was loaded, its position is already after them, so nothing more is skipped.
        """
        loaded, self._loaded = self._loaded, None
        state = self._loader.state_dict() if loaded is None else loaded
        info = self._loader.info()
        is_simple = set(state) <= _SIMPLE_STATE
        # The last batch of an epoch may be incomplete.
        position = min(batches * self.global_batch_size, int(info["samples"]))
        if loaded is not None:
            if is_simple and loaded["position"] not in (position, 0):
                raise OptionError(
                    f"The loaded state continues after {loaded['position']} samples of epoch {loaded['epoch']}, but "
                    f"skip_first_batches(..., {batches}) would continue after {position}: remove skip_first_batches, "
                    "because the loaded state is enough."
                )
            if not is_simple or loaded["position"] == position:
                self._stay_in(loaded["epoch"])
                return 0
        if not is_simple:
            return batches
        self._loader.load_state_dict({**state, "epoch": info["epoch"], "position": position})
        self._stay_in(info["epoch"])
        return 0

    def _stay_in(self, epoch: int) -> None:
        """After the last batch of this epoch, the next loop is empty instead of going through the following epoch."""
        self._loader.set_epoch(epoch)


class _Samples(torch.utils.data.IterableDataset):  # type: ignore[type-arg]
    """The dataset of a prepared loader, from which ``accelerate.skip_first_batches`` makes another DataLoader.

    That DataLoader reads all batches and drops the first ones. Here the loader skips to the position at once, and
    yields None for each dropped batch.
    """

    def __init__(self, prepared: PreparedLoader) -> None:
        super().__init__()
        self._prepared = prepared

    def __len__(self) -> int:
        return int(self._prepared._loader.info()["samples"])

    def __iter__(self) -> Iterator[Any]:
        skips = skipping_caller(self)
        if skips is None:
            return iter(self._prepared)
        return self._behind(int(skips.skip_batches))

    def _behind(self, batches: int) -> Iterator[Any]:
        to_drop = self._prepared._skip(batches)
        for _ in range(batches - to_drop):
            yield None
        yield from self._prepared._loop()


def _options_of_process(accelerator: Any, options: Dict[str, Any]) -> Dict[str, Any]:
    """The loader's options that follow from the accelerator, in addition to those that were given."""
    given = (options.get("rank"), options.get("world_size"))
    mesh = getattr(accelerator, "torch_device_mesh", None)
    if mesh is not None and given == (None, None):
        shared = [name for name in mesh.mesh_dim_names or () if name in _SAME_BATCH and mesh[name].size() > 1]
        if shared:
            raise OptionError(
                f"The device mesh has {', '.join(shared)}, so several processes take the same batch: set rank and "
                "world_size to those of the data-parallel group."
            )
    ranks = (accelerator.process_index, accelerator.num_processes)
    if given != (None, None) and mesh is None and given != ranks:
        raise OptionError(
            f"The loader was given rank={given[0]} and world_size={given[1]}, but Accelerate's process is {ranks[0]} "
            f"of {ranks[1]}: remove both."
        )
    started = os.environ.get("WORLD_SIZE", "1")
    if given == (None, None) and ranks[1] == 1 and started not in ("", "1"):
        raise OptionError(
            f"WORLD_SIZE is {started}, but this Accelerator has a single process, so each process would train on all "
            "samples: start the processes with accelerate launch, or on a machine without a GPU, use "
            "Accelerator(cpu=True)."
        )
    if given == (None, None):
        options.update(rank=ranks[0], world_size=ranks[1])
    if options.get("epochs_per_loop") not in (None, 1):
        raise OptionError("With Accelerate a loop is one epoch: remove epochs_per_loop.")
    if options.get("last_batch") == "partial" and options["world_size"] > 1:
        raise OptionError(
            'With last_batch="partial", batches differ in size between processes, so they cannot be gathered: remove '
            'it (gather_for_metrics removes the padded rows), or use "drop".'
        )
    if options.get("output", "torch") != "torch":
        raise OptionError(f"Accelerate takes torch tensors: remove output={options['output']!r}.")
    if getattr(accelerator, "split_batches", False) and options.get("batch_size") is not None:
        options["global_batch_size"] = options.pop("batch_size")
    return options


def _remove_padding_in_gather(accelerator: Any) -> None:
    """Makes ``gather_for_metrics`` of this accelerator remove rows that do not count, in batches of prepared loaders.

    Accelerate removes such rows by their number, from the end of the gathered rows. Here they are at the end of each
    process's part.
    """
    gather_for_metrics = accelerator.gather_for_metrics
    if getattr(gather_for_metrics, "_is_of_shardtool", False):
        return
    reference = weakref.ref(accelerator)

    def gather_valid(input_data: Any, use_gather_object: bool = False) -> Any:
        own = reference()
        active = None if own is None else own.gradient_state.active_dataloader
        # Old versions of Accelerate gather only tensors.
        gathered = gather_for_metrics(input_data, True) if use_gather_object else gather_for_metrics(input_data)
        if own is None or not isinstance(active, PreparedLoader):
            return gathered
        # All processes must make the same decision about gathering the rows that count.
        if not (active.end_of_dataloader or active._may_skip_rows):
            return gathered
        valid = own.gather(active._valid.to(own.device))
        return _rows(gathered, valid, valid.tolist())

    gather_valid._is_of_shardtool = True  # type: ignore[attr-defined]
    accelerator.gather_for_metrics = gather_valid


def _rows(values: Any, valid: Any, flags: Any) -> Any:
    """The valid rows of all tensors, and of a list of objects. Values of another length stay unchanged."""
    if isinstance(values, torch.Tensor):
        return values[valid.to(values.device)] if values.ndim > 0 and len(values) == len(flags) else values
    if isinstance(values, Mapping):
        return type(values)({name: _rows(value, valid, flags) for name, value in values.items()})  # type: ignore[call-arg]
    if isinstance(values, tuple) and hasattr(values, "_fields"):
        return type(values)(*(_rows(value, valid, flags) for value in values))
    if isinstance(values, (list, tuple)):
        if len(values) == len(flags) and not any(isinstance(value, torch.Tensor) for value in values):
            return type(values)(value for value, flag in zip(values, flags) if flag)
        return type(values)(_rows(value, valid, flags) for value in values)
    return values
