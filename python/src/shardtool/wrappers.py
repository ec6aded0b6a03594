"""Detects how Accelerate and Hugging Face's Trainer read an IterableDataset, so that each sample comes exactly once.

They wrap the user's DataLoader without telling the dataset:

- ``DataLoaderDispatcher`` (their default, ``dispatch_batches=True``) reads the dataset in process 0 and sends each
  process its rows. The dataset must return all samples in process 0, as if it were the only process.
- ``IterableDatasetShard`` (``dispatch_batches=False``) reads the whole dataset in each process and keeps every n-th
  element. A dataset that is already sharded must pass through it complete.

The call stack shows which of them reads.
"""

from __future__ import annotations

import sys
from typing import Any, Dict, Iterator, NamedTuple, Optional, Tuple

from .errors import OptionError

_DISPATCHERS = (("accelerate.data_loader", "DataLoaderDispatcher"),)
_SHARDS = (
    ("accelerate.data_loader", "IterableDatasetShard"),
    ("transformers.trainer_pt_utils", "IterableDatasetShard"),
)
_LOOPING = tuple(
    ("accelerate.data_loader", name) for name in ("SkipDataLoader", "DataLoaderShard", "DataLoaderDispatcher")
)


class Share(NamedTuple):
    """The part of a dataset that a framework reads in this process."""

    rank: int
    world_size: int
    #: Number of processes that get their rows from this one, including itself.
    receivers: int = 1
    #: Whether they share one batch, instead of each getting its own batch.
    cuts_batches: bool = False
    #: Whether Accelerate sends the tensors of the batches to other processes.
    is_sent: bool = False


def share_of_caller(dataset: Any, is_loop: bool = False) -> Optional[Share]:
    """How the framework that is calling reads the dataset. None if no framework splits it.

    ``is_loop``: its loop has begun, so that it is too late to change how it reads.
    """
    dispatchers, shards = _classes(_DISPATCHERS), _classes(_SHARDS)
    if not dispatchers and not shards:
        return None
    for caller in _callers():
        if isinstance(caller, shards) and caller.dataset is dataset:
            return _let_through(caller, is_loop)
        if isinstance(caller, dispatchers) and caller.base_dataloader.dataset is dataset:
            return _of_dispatcher(caller)
    return None


def skipping_caller(dataset: Any) -> Any:
    """The object that ``accelerate.skip_first_batches`` made of this dataset and that is beginning to loop, or None."""
    wrapper = looping_caller(dataset)
    return wrapper if wrapper is not None and getattr(wrapper, "skip_batches", 0) > 0 else None


def looping_caller(dataset: Any) -> Any:
    """Accelerate's wrapper of a DataLoader of this dataset that is beginning to loop, or None."""
    classes = _classes(_LOOPING)
    if not classes:
        return None
    for caller, name in _calls():
        if isinstance(caller, classes) and name == "__iter__":
            read = caller.base_dataloader.dataset
            if read is dataset or getattr(read, "dataset", None) is dataset:
                return caller
    return None


def _classes(names: Tuple[Tuple[str, str], ...]) -> Any:
    """The classes whose modules the program has imported."""
    found = (getattr(sys.modules.get(module), name, None) for module, name in names)
    return tuple(one for one in found if isinstance(one, type))


def _callers() -> Iterator[Any]:
    """The objects whose methods are being called, the innermost first."""
    return (caller for caller, _ in _calls())


def _calls() -> Iterator[Tuple[Any, str]]:
    """Like :func:`_callers`, with the names of the methods."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_argcount > 0 and frame.f_code.co_varnames[0] == "self":
            yield frame.f_locals.get("self"), frame.f_code.co_name
        frame = frame.f_back  # type: ignore[assignment]


def _of_dispatcher(dispatcher: Any) -> Share:
    from torch.utils.data._utils.collate import default_convert

    return Share(
        rank=0,
        world_size=1,
        receivers=int(dispatcher.state.num_processes),
        cuts_batches=bool(dispatcher.split_batches),
        is_sent=dispatcher.base_dataloader.collate_fn is default_convert,
    )


#: The share for which a wrapper was made, before it was changed to pass on all elements.
_SHARE = "_shardtool_share"


def _let_through(shard: Any, is_loop: bool) -> Share:
    """Makes the wrapper pass on every element that it reads. This is called when the wrapper requests the length or
    sets the epoch, before it loops."""
    share: Optional[Share] = getattr(shard, _SHARE, None)
    if share is not None:
        return share
    if is_loop:
        raise OptionError(
            "The dataset is already split by ranks, and Accelerate would split it again: update accelerate, or do not "
            "pass the DataLoader to it."
        )
    share = Share(rank=int(shard.process_index), world_size=int(shard.num_processes))
    elements = shard.batch_size
    if elements is not None and shard.split_batches:
        elements = elements // share.world_size
    if elements not in (None, 1):
        raise OptionError(
            f"The dataset already yields whole batches, but the DataLoader around it combines {elements} of them on "
            f"each of {share.world_size} ranks: set its batch_size to None or 1 (in a Trainer, "
            "per_device_train_batch_size=1 and per_device_eval_batch_size=1), and set batch_size=... for the dataset."
        )
    shard.process_index, shard.num_processes, shard.batch_size, shard.split_batches = 0, 1, 1, False
    setattr(shard, _SHARE, share)
    return share


def options_of_share(share: Optional[Share], options: Dict[str, Any]) -> Dict[str, Any]:
    """The loader's options that follow from a share, under the reader's names.

    Raises OptionError if they contradict those that were given.
    """
    if share is None:
        return {}
    given = (options.get("rank"), options.get("world_size"))
    if given != (None, None) and given != (share.rank, share.world_size):
        raise OptionError(
            f"The dataset was made with rank={given[0]} and world_size={given[1]}, but Accelerate reads it as rank "
            f"{share.rank} of {share.world_size}: remove both, or do not pass the DataLoader to Accelerate."
        )
    chosen = {"rank": share.rank, "worldSize": share.world_size}
    rows = options.get("global_batch_size")
    if rows is not None and share.receivers > 1 and not share.cuts_batches:
        if rows % share.receivers != 0:
            raise OptionError(
                f"global_batch_size is {rows}, which {share.receivers} processes cannot share evenly: use a multiple "
                f"of {share.receivers}."
            )
        chosen["globalBatchSize"] = rows // share.receivers
    return chosen
