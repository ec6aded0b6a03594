"""Images and captions for open_clip's training.

train = shardtool.open_clip.get_shard_dataset(args, preprocess_train, is_train=True, tokenizer=tokenizer)

python -m shardtool.open_clip --dataset-type webdataset --train-data shards/ --model ViT-B-32   # open_clip_train.main
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Callable, Iterator, Tuple

from .errors import OptionError
from .loader import Loader


def get_shard_dataset(
    args: Any,
    preprocess_img: Any,
    is_train: bool,
    epoch: int = 0,
    floor: bool = False,
    tokenizer: Any = None,
    caption: str = "txt",
    **options: Any,
) -> Any:
    """A ``DataInfo`` of open_clip_train, in place of its ``get_wds_dataset``.

    ``args``: those of open_clip_train, of which ``train_data`` or ``val_data`` is the location of the shards,
    ``batch_size`` the rows of a rank, and ``seed``, ``rank``, ``world_size`` and ``workers`` are used.
    ``preprocess_img`` is the transform of open_clip. ``caption``: the field that has the text of a sample. ``floor``
    has no effect: training always drops the incomplete last batch. ``options``: those of :class:`shardtool.Loader`.
    """
    location = args.train_data if is_train else args.val_data
    if tokenizer is None:
        raise OptionError("get_shard_dataset needs tokenizer=open_clip.get_tokenizer(model).")
    # open_clip evaluates on its first rank alone.
    rank, world_size = (args.rank, args.world_size) if is_train else (0, 1)
    loader: Loader[Any, Any] = Loader(
        location,
        **{
            **{"batch_size": args.batch_size, "transform": preprocess_img, "fields": [caption], "seed": args.seed},
            **{"shuffle": is_train, "last_batch": "drop" if is_train else "partial"},
            **{"rank": rank, "world_size": world_size, "workers": max(1, args.workers)},
            **options,
        },
    )
    loader.set_epoch(epoch)
    data: Any = import_module("open_clip_train.data")
    return data.DataInfo(dataloader=ImagesAndTexts(loader, tokenizer, caption), shared_epoch=_Epoch(loader))


class ImagesAndTexts:
    """``(images, tokens)`` of a loader. Batches are copies that the caller may keep."""

    def __init__(self, loader: Loader[Any, Any], tokenizer: Callable[..., Any], caption: str) -> None:
        self.shards = loader
        self._tokenizer = tokenizer
        self._caption = caption
        self.num_samples = int(loader.info()["samples"])
        self.num_batches = len(loader)

    def __len__(self) -> int:
        return self.num_batches

    def __iter__(self) -> Iterator[Tuple[Any, Any]]:
        for batch in self.shards:
            yield batch.images, self._tokenizer([self._text(value) for value in batch.fields[self._caption]])

    def _text(self, value: Any) -> str:
        if value is None:
            raise OptionError(
                f"A sample has no field {self._caption!r}: set caption= to the field with captions, or exclude samples "
                "without captions with keys= or where=."
            )
        return value.decode() if isinstance(value, bytes) else str(value)

    def close(self) -> None:
        self.shards.close()


class _Epoch:
    """The value that open_clip sets at the start of each epoch."""

    def __init__(self, loader: Loader[Any, Any]) -> None:
        self._loader = loader

    def set_value(self, epoch: int) -> None:
        self._loader.set_epoch(epoch)


def main() -> None:
    """Runs ``open_clip_train.main`` with shards in place of its tars of webdataset."""
    data: Any = import_module("open_clip_train.data")
    data.get_wds_dataset = import_module("shardtool.open_clip").get_shard_dataset
    program: Any = import_module("open_clip_train.main")
    program.main(import_module("sys").argv[1:])


if __name__ == "__main__":
    main()
