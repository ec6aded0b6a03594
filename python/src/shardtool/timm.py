"""Batches for timm: its ``create_loader`` over shards, a reader for its datasets, and support for its unchanged
scripts.

loader = shardtool.timm.create_loader("shards/train", (3, 224, 224), 256, is_training=True, hflip=0.5)

python -m shardtool.timm train.py --dataset shards/ --data-dir shards --model resnet50   # and validate.py
"""

from __future__ import annotations

import io
import os
import runpy
import sys
from importlib import import_module
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch

from .dataset import Dataset
from .errors import OptionError, warn
from .foreign_transforms import steps_from
from .loader import Loader
from .mixture import Mixture

_loader: Any = import_module("timm.data.loader")
_readers: Any = import_module("timm.data.readers.reader_factory")
_data: Any = import_module("timm.data")
_reader: Any = import_module("timm.data.readers.reader")
_class_map: Any = import_module("timm.data.readers.class_map")

#: timm's own functions, for datasets that are not of shards.
_create_loader = _data.create_loader
_create_reader = _readers.create_reader

#: Arguments of timm's `create_loader` that make the transform, of those that are not named below.
_OF_TRANSFORM = (
    *(
        "no_aug",
        "re_prob",
        "re_mode",
        "re_count",
        "train_crop_mode",
        "scale",
        "ratio",
        "hflip",
        "vflip",
        "color_jitter",
    ),
    *("color_jitter_prob", "grayscale_prob", "gaussian_blur_prob", "auto_augment", "interpolation", "mean", "std"),
    *("crop_pct", "crop_mode", "crop_border_pixels"),
)
#: Arguments without meaning for a loader, whose own workers stay from one epoch to the next.
_WITHOUT_EFFECT = ("use_multi_epochs_loader", "persistent_workers", "worker_seeding", "fp16")


class ReaderShards(_reader.Reader):  # type: ignore[misc]
    """Single samples of shards for ``timm.data.ImageDataset``: the bytes of the image and the class.

    ``root``: the location of the dataset. ``class_map`` is a dictionary from names of classes to numbers or its file,
    as for other readers of timm.
    """

    def __init__(self, root: Any, class_map: Any = "", **options: Any) -> None:
        super().__init__()
        self.location = root if isinstance(root, Mixture) else os.fspath(root)
        self.options = options
        self._samples: Dataset[Any] = Dataset(root, transform="raw", output="numpy", **options)
        names = self._samples.classes
        self.class_to_idx = _class_map.load_class_map(class_map, str(root)) if class_map else None
        #: The number of each class of the dataset in the class map, and last -1, which is the number of samples without
        #: a class. None: numbers stay.
        self.targets: Optional[List[int]] = None
        if self.class_to_idx is not None:
            missing = [name for name in names if name not in self.class_to_idx]
            if missing:
                raise OptionError(f"The class map has no class {missing[0]!r}: add it, or remove class_map.")
            self.targets = [*(int(self.class_to_idx[name]) for name in names), -1]
        else:
            self.class_to_idx = self._samples.class_to_idx

    def __getitem__(self, index: int) -> Tuple[io.BytesIO, int]:
        image, target = self._samples[index][:2]
        return io.BytesIO(image), target if self.targets is None else self.targets[target]

    def __len__(self) -> int:
        return len(self._samples)

    def _filename(self, index: int, basename: bool = False, absolute: bool = False) -> str:
        key = str(self._samples[index].key)
        return key.rpartition("/")[2] if basename else key


def create_reader(name: str, root: Any = None, split: str = "train", **options: Any) -> Any:
    """``timm.data.readers.create_reader`` that also knows ``shards/``: shards in ``root``, or in a folder of it."""
    prefix, _, rest = name.partition("/")
    if prefix.lower() != "shards":
        return _create_reader(name, root=root, split=split, **options)
    location = os.path.join(root, rest) if root and rest else root or rest
    if not location:
        raise OptionError("shards/ needs the location of a dataset: --data-dir FOLDER, or --dataset shards/FOLDER.")
    return ReaderShards(location, class_map=options.get("class_map") or "")


def create_loader(
    dataset: Any,
    input_size: Any,
    batch_size: int,
    is_training: bool = False,
    num_workers: Optional[int] = None,
    distributed: bool = False,
    collate_fn: Optional[Callable[[Any], Any]] = None,
    pin_memory: bool = False,
    img_dtype: torch.dtype = torch.float32,
    device: Any = "cuda",
    use_prefetcher: bool = True,
    seed: int = 42,
    loader_options: Optional[Dict[str, Any]] = None,
    **arguments: Any,
) -> Any:
    """``timm.data.create_loader`` over shards.

    ``dataset``: the location of shards, a :class:`shardtool.Mixture`, or a dataset of timm with a
    :class:`ReaderShards`. The arguments are those of timm, and the transform is the one that timm's
    ``create_transform`` makes of them. Steps that shardtool knows run in the reader. The others run unchanged, as
    ``python_transform``. Random erasing and normalisation run on ``device``, in timm's ``PrefetchLoader``, unless
    ``use_prefetcher`` is false.

    ``num_workers``: decode workers; default: all cores, divided among the ranks of a machine. ``seed`` determines order
    and augmentation, and must be the same on all ranks. ``loader_options``: more options of :class:`shardtool.Loader`.

    A training batch is always full, as in timm. An evaluation counts each sample once, except that with ``distributed``
    a rank without a sample of the last batch gets one more.

    Raises OptionError for arguments that it cannot follow, such as ``num_aug_splits``.
    """
    unknown = [name for name in arguments if name not in signature(_create_loader).parameters]
    if unknown:
        raise TypeError(f"create_loader of timm has no argument {unknown[0]!r}.")
    refused = [*_refused(arguments), *_refused_settings(dataset)]
    if refused:
        raise OptionError(f"shardtool.timm.create_loader does not support {', '.join(refused)}: remove it.")
    location, reader = _location_of(dataset)
    transform = _data.create_transform(
        input_size,
        is_training=is_training,
        use_prefetcher=use_prefetcher,
        **{name: value for name, value in arguments.items() if name in _OF_TRANSFORM},
    )
    options: Dict[str, Any] = {**(reader.options if reader is not None else {}), "batch_size": batch_size, "seed": seed}
    options.update(_transform_options(transform))
    options.update(
        shuffle=is_training,
        last_batch="drop" if is_training else "partial",
        workers=None if num_workers is None else max(1, num_workers),
    )
    channels = input_size[0] if isinstance(input_size, (tuple, list)) and len(input_size) == 3 else 3
    if reader is None and channels != 3:
        options["channels"] = channels
    if not distributed:
        options.update(rank=0, world_size=1)
    if arguments.get("num_aug_repeats"):
        options["repeats"] = arguments["num_aug_repeats"]
    device = torch.device(device)
    is_cuda = device.type == "cuda"
    # A collate function takes single numpy images. Without one, batches can be copied to the device directly.
    if is_cuda and use_prefetcher and collate_fn is None:
        options["device"] = str(device)
    elif pin_memory and torch.cuda.is_available():
        options["pin_memory"] = True
    options.update(loader_options or {})
    if options.get("on_bad") == "skip":
        raise OptionError('A batch of timm cannot mark the rows that on_bad="skip" leaves empty: use on_bad="replace".')
    batches = _Batches(Loader(location, **options), reader, collate_fn, dataset)
    if not use_prefetcher:
        return batches
    erasing: Dict[str, Any] = {
        name: arguments[name] for name in ("re_prob", "re_mode", "re_count") if name in arguments
    }
    if not is_training or arguments.get("no_aug"):
        erasing = {}
    elif arguments.get("re_split"):
        erasing["re_num_splits"] = 2
    means = {name: arguments[name] for name in ("mean", "std") if name in arguments}
    return ShardPrefetchLoader(batches, channels=channels, device=device, img_dtype=img_dtype, **means, **erasing)


class ShardPrefetchLoader(_loader.PrefetchLoader):  # type: ignore[misc]
    """timm's PrefetchLoader over batches of shards.

    A batch is a new tensor on the device, which the caller may keep. On a GPU, the loader has copied the bytes ahead on
    a separate stream, makes the current stream wait for them, and records them on it. Normalisation and random erasing
    run on the current stream. This class reads nothing ahead, so :meth:`state_dict` is that of the batch in use.
    """

    def __iter__(self) -> Iterator[Tuple[Any, Any]]:
        for images, targets in self.loader:
            bytes_there = images.to(self.device, non_blocking=True)
            values = bytes_there.to(self.img_dtype).sub(self.mean).div_(self.std)
            if self.random_erasing is not None:
                values = self.random_erasing(values)
            yield values, targets.to(self.device, non_blocking=True)

    def set_epoch(self, epoch: int) -> None:
        self.loader.set_epoch(epoch)

    def state_dict(self) -> Dict[str, Any]:
        return self.loader.state_dict()  # type: ignore[no-any-return]

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        self.loader.load_state_dict(state_dict)

    def close(self) -> None:
        self.loader.close()


class _Batches:
    """``(images, targets)`` of a loader, with the attributes of a DataLoader that timm's scripts use."""

    def __init__(self, loader: Loader[Any, Any], reader: Optional[ReaderShards], collate_fn: Any, dataset: Any) -> None:
        self.shards = loader
        self.collate_fn = collate_fn
        #: The scripts set the epoch by one of these three attributes.
        self.sampler = self.batch_sampler = SimpleNamespace(set_epoch=self.set_epoch)
        self.dataset = dataset if reader is not None else SimpleNamespace(location=dataset)
        targets = None if reader is None else reader.targets
        self._targets = None if targets is None else torch.tensor(targets)

    def __iter__(self) -> Iterator[Tuple[Any, Any]]:
        for images, labels in self.shards:
            targets = labels if self._targets is None else self._targets.to(labels.device)[labels]
            if self.collate_fn is None:
                yield images, targets
            else:
                rows = images.contiguous().numpy()
                yield self.collate_fn([(image, int(target)) for image, target in zip(rows, targets)])

    def __len__(self) -> int:
        return len(self.shards)

    def set_epoch(self, epoch: int) -> None:
        self.shards.set_epoch(epoch)

    def state_dict(self) -> Dict[str, Any]:
        return self.shards.state_dict()

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        self.shards.load_state_dict(state_dict)

    def close(self) -> None:
        self.shards.close()


def _refused(arguments: Dict[str, Any]) -> List[str]:
    """Names of arguments that are set, but not supported for shards."""
    known = {*_OF_TRANSFORM, *_WITHOUT_EFFECT, "re_split", "num_aug_repeats"} - {"crop_border_pixels"}
    no_effect = {"batch_choice_seed", "batch_choice_schedule", "batch_schedule_spread", "batch_schedule_random_mix"}
    return [
        name
        for name, value in arguments.items()
        if (name not in known and name not in no_effect and value not in (None, False, 0))
        or (name == "num_aug_repeats" and value and "repeats" not in _loader_options())
        # The other crops of timm return images of several sizes to the step that follows.
        or (name == "train_crop_mode" and value not in (None, "rrc"))
    ]


def _refused_settings(dataset: Any) -> List[str]:
    """Names of settings of a dataset of timm that a loader of shards cannot follow."""
    if not isinstance(getattr(dataset, "reader", None), ReaderShards):
        return []
    refused = [
        name for name in ("load_bytes", "target_transform", "additional_features") if getattr(dataset, name, None)
    ]
    return refused if getattr(dataset, "input_img_mode", "RGB") == "RGB" else ["input_img_mode", *refused]


def _loader_options() -> Any:
    from .options import LoaderOptions

    return LoaderOptions.__annotations__


def _location_of(dataset: Any) -> Tuple[Any, Optional[ReaderShards]]:
    reader = getattr(dataset, "reader", None)
    if isinstance(reader, ReaderShards):
        return reader.location, reader
    if isinstance(dataset, (str, Path, Mixture)) or (isinstance(dataset, list) and dataset):
        return dataset, None
    raise OptionError(
        f"dataset must be the location of shards, or a dataset of timm that reads shards/, not "
        f"{type(dataset).__name__}."
    )


def _transform_options(transform: Any) -> Dict[str, Any]:
    """The transform as options of a loader: the first steps that shardtool knows, and the rest as a Python
    transform."""
    parts = list(getattr(transform, "transforms", [transform]))
    if parts and type(parts[-1]).__name__ in ("ToNumpy", "MaybePILToTensor", "PILToTensor"):
        # A loader returns bytes [n, 3, h, w].
        parts.pop()
    problem: Optional[OptionError] = None
    for count in range(len(parts), 0, -1):
        try:
            steps = steps_from(parts[:count])
        except OptionError as error:
            problem = error
            continue
        rest = parts[count:]
        return {"transform": steps, **({"python_transform": _Rest(rest)} if rest else {})}
    raise OptionError(f"timm's transform cannot be translated: {problem}")


class _Rest:
    """Transforms that shardtool does not know, one after the other. It can be pickled, for workers that are spawned."""

    def __init__(self, parts: List[Any]) -> None:
        self.parts = parts

    def __call__(self, image: Any) -> Any:
        value = import_module("PIL.Image").fromarray(image)
        for part in self.parts:
            value = part(value)
        return value


def install() -> None:
    """Makes timm read ``shards/``: its ``create_dataset`` knows the prefix, and its ``create_loader`` reads such
    datasets with :func:`create_loader`. If that does not support an argument, timm reads single samples, after a
    warning."""

    def create(dataset: Any, *arguments: Any, **named: Any) -> Any:
        if not isinstance(getattr(dataset, "reader", None), ReaderShards):
            return _create_loader(dataset, *arguments, **named)
        refused = [*_refused(_without_own(named)), *_refused_settings(dataset)]
        if refused:
            warn(f"timm reads single samples of the shards, which takes longer, because of {', '.join(refused)}.")
            return _create_loader(dataset, *arguments, **named)
        return create_loader(dataset, *arguments, **named)

    modules: List[Any] = [_readers, import_module("timm.data.readers"), import_module("timm.data.dataset")]
    for module in modules:
        module.create_reader = create_reader
    for module in (_data, _loader):
        module.create_loader = create


def _without_own(named: Dict[str, Any]) -> Dict[str, Any]:
    """The arguments that :func:`create_loader` does not have by name."""
    own = signature(create_loader).parameters
    return {name: value for name, value in named.items() if name not in own}


def main() -> None:
    """Runs a script of timm that reads shards: ``python -m shardtool.timm train.py --dataset shards/ ...``."""
    if len(sys.argv) < 2:
        raise SystemExit("Usage: python -m shardtool.timm SCRIPT [ARGUMENTS], with --dataset shards/ among them.")
    # Imported by name, because this module is __main__ here.
    import_module("shardtool.timm").install()
    sys.argv = sys.argv[1:]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
