"""What :class:`shardtool.Loader` takes, beyond what concerns Python alone.

The options are those of the reader (packages/reader/src/loader/options.ts), which checks them and has the defaults.
"""

from __future__ import annotations

import difflib
import math
import numbers
import os
import re
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Mapping, Sequence, TypedDict, Union

if TYPE_CHECKING:
    from typing import Literal

    from numpy.typing import ArrayLike

    from .steps import Step

#: A folder, or a list of tars: paths, or locations as ``s3://bucket/shards`` and ``https://host/shards``.
Location = Union[str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]]]

#: A preset (``"train224"``, ``"eval224"``), ``"raw"``, or a list of steps: ``[{"name": "resize", "size": 256}, ...]``.
if TYPE_CHECKING:
    Transform = Union[str, Sequence[Union[Step, Mapping[str, Any]]]]
else:
    Transform = Union[str, Sequence[Mapping[str, Any]]]

#: A rule (``{"area": 1024 * 1024, "step": 64, "max_ratio": 2, "crop": "random"}``), a list of sizes, each
#: ``[height, width]``, or ``{"sizes": [...], "crop": "center"}``.
Buckets = Union[Mapping[str, Any], Sequence[Sequence[int]]]


class _CommonOptions(TypedDict, total=False):
    #: Rows of this rank's batches. Default 64.
    batch_size: int | None
    #: Rows of a batch over all ranks, instead of ``batch_size``.
    global_batch_size: int | None
    #: Default 0. With the epoch it decides the order and every random number.
    seed: int | None
    #: The first epoch. Default 0.
    epoch: int | None
    #: Epochs that one loop goes through; after ``load_state_dict`` the resumed epoch, or what is left of it, is the
    #: first. Default 1; ``math.inf`` is allowed.
    repeat: float | None
    #: Default true. False: the order on disk.
    shuffle: bool | None
    #: Forces the unit of the shuffle; by default it follows from the sizes.
    shuffle_unit: Literal["sample", "shard", "chunk"] | None
    #: Streams that are read at once over all ranks. Default: the least common multiple of 192 and ``world_size``.
    streams: int | None
    #: Samples in the shuffle buffers of all streams together. Default: as many as make blocks of about 2 MiB.
    shuffle_buffer_size: int | None
    #: Samples in a block of a stream, instead of ``shuffle_buffer_size``.
    block_samples: int | None
    #: Default: RANK and WORLD_SIZE (torchrun), else SLURM_PROCID and SLURM_NTASKS, else 0 of 1.
    rank: int | None
    world_size: int | None
    #: What becomes of an incomplete last batch. Default ``partial`` alone, ``pad`` with more than one rank.
    last_batch: Literal["pad", "drop", "partial"] | None
    #: Batches of several sizes, each of one: an image goes to the size nearest to its shape, is resized to cover it
    #: and cropped. ``batch.crop`` says which part a row shows. The transform then has no step with a size of its own.
    buckets: Buckets | None
    #: With ``buckets``: most bytes of encoded samples that wait for their batch longer than the block that they came
    #: in. Default 256 MiB.
    hold_bytes: int | None
    #: An epoch is exactly this many samples of the endless sequence of passes.
    epoch_samples: int | None
    #: Only these classes: a str is a name, an int a class number.
    classes: Sequence[str | int] | None
    #: Only these keys.
    keys: Sequence[str] | None
    #: Only samples for which this holds, over the columns of the index: ``width >= 256 and cls in (3, 7)``.
    where: str | None
    #: How often a sample comes in an epoch: by class (a str is its name, an int its number; default 1), or an array
    #: with a number for each sample, as ``WeightedRandomSampler`` takes it.
    weights: Mapping[str | int, float] | ArrayLike | None
    #: An order of your own: numbers of samples, as :class:`shardtool.Dataset` counts them, in the order in which they
    #: come in every epoch, over all ranks. One may come more than once.
    order: ArrayLike | None
    #: Decode workers. Default: the number of cores, divided by LOCAL_WORLD_SIZE.
    workers: int | None
    #: Batches that are made ahead, the one in use included. Default 4.
    prefetch_batches: int | None
    #: Whether crc32 of each image, mask and field that is delivered is checked. Default ``first-epoch``.
    checksum: Literal["first-epoch", "always", "never"] | None
    #: The field that is the image. Default: the sample's first field of an image kind.
    image: str | None
    #: Further fields that are images of the same size, transformed as the image is: ``batch.more_images``.
    more_images: Sequence[str] | None
    #: Fields that are masks of the image's size: they share its crop, flips and rotation, as ``batch.masks``.
    masks: Sequence[str] | None
    #: Boxes, keypoints and polygons that move with the image: ``batch.boxes`` and the like, ``batch.targets()``.
    annotations: Mapping[str, Any] | None
    #: Own code in JavaScript that runs in the workers, by where it runs: ``{"pixels": {"module": "steps.mjs"}}``.
    steps: Mapping[str, Mapping[str, Any]] | None
    #: Mixes each image with the one before it, ``{"name": "mixup", "alpha": 0.2}``, or a list: ``batch.mix`` says how.
    mix: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None
    #: Fields, and columns that came with the labels, that come along as ``batch.fields``. Default: none.
    fields: Sequence[str] | None
    #: ``random`` takes one of several captions (a JSON list, or lines), another one each epoch.
    text_choice: Literal["random"] | None
    #: Default ``raise``. ``skip`` marks the row not valid, ``substitute`` takes the next good sample of the same block.
    on_bad_sample: Literal["raise", "skip", "substitute"] | None
    #: Images of more pixels are bad samples. Default 178,956,970, as in Pillow.
    max_pixels: int | None
    #: How large JPEGs are decoded. ``exact``: whole, with Pillow's pixels; ``scaled`` (default) and ``fast``: at 1/2 to
    #: 1/8 where twice, or once, the size is left that the transform makes of them (docs/transforms.md). Part of a
    #: state.
    decode: Literal["exact", "scaled", "fast"] | None
    #: Turns images as their EXIF orientation says. Default false, as in torchvision; with ``buckets`` true.
    apply_exif_orientation: bool | None
    #: Decodes crops of JPEGs by the crop indexes of shards that have them (``pack --crop-index``): the pixels are the
    #: same, sooner. Default: where reads are quick, since a crop index is more to fetch. True: also from afar.
    crop_index: bool | None
    #: Most memory for encoded samples, in bytes. Default: half of the machine's memory.
    read_buffer_bytes: int | None
    #: Blocks that are being read at once. Default: 4 on a local disk, elsewhere as many as bring more bytes a second.
    read_concurrency: int | None
    #: A folder on a local disk (or in memory) that keeps what was fetched, for all processes and all datasets.
    cache: str | os.PathLike[str] | None
    #: Most bytes in it, all processes together: a number, or text as ``"200GB"``. Default: half of what is free.
    cache_size: int | str | None


class _Transformed(TypedDict, total=False):
    #: Default: images are decoded as they are, which needs images of one size or ``collate="list"``.
    transform: Transform | None


class _Collated(TypedDict, total=False):
    #: ``stack`` (default): one array of images of one size. ``list``: an array for each image, copied.
    collate: Literal["stack", "list"] | None


class LoaderOptions(_CommonOptions, _Transformed, _Collated, total=False):
    """All are optional; ``None`` means the default."""


class Seen(TypedDict, total=False):
    """What is seen of a place, and how it is asked: of :class:`shardtool.Loader` and :class:`shardtool.Dataset`."""

    overlay: str | None
    split: str | None
    exclude_keys: Iterable[str] | None
    layout: str | None
    features: Mapping[str, str] | None
    max_sample_bytes: int | None
    storage: Mapping[str, Any] | None


class _PythonOptions(Seen, total=False):
    with_keys: bool
    hold: int
    device: str
    dtype: Literal["uint8", "float16", "bfloat16", "float32"] | None
    mean: Sequence[float] | None
    std: Sequence[float] | None
    pin_memory: bool


class LoaderArguments(LoaderOptions, _PythonOptions, total=False):
    """All that :class:`shardtool.Loader` takes by name, but for ``output``."""


class ListArguments(_CommonOptions, _Transformed, _PythonOptions, total=False):
    """The same beside ``collate="list"``, which says the type of the images."""


class RawListArguments(_CommonOptions, _PythonOptions, total=False):
    """The same beside both."""


class RawArguments(_CommonOptions, _Collated, _PythonOptions, total=False):
    """The same beside ``transform="raw"``."""


class DatasetArguments(Seen, total=False):
    """All that :class:`shardtool.Dataset` takes by name, but for ``transform`` and ``output``."""

    target_transform: Callable[[int], Any] | None
    fields: Sequence[str]
    image: str | None
    seed: int
    decode: Literal["exact", "scaled", "fast"] | None
    apply_exif_orientation: bool | None
    max_pixels: int | None


def _camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda letter: letter.group(1).upper(), name)


#: The reader's name of each option, by Python's.
OPTION_NAMES: Dict[str, str] = {name: _camel(name) for name in LoaderOptions.__annotations__}


class WriterOptions(TypedDict, total=False):
    """What :class:`shardtool.Writer` takes beside its own; ``None`` means the default."""

    #: Kind of shards. Default ``tar``.
    format: Literal["tar", "lmdb", "msgpack"] | None
    #: What LMDB has under a key: all fields (default), or the image alone.
    lmdb_values: Literal["sample", "image"] | None
    #: Indexes for other loaders of tars.
    index: Sequence[Literal["wids", "dali", "crops"]] | None
    #: Most bytes of a shard, as a tar. Default 256 MiB.
    max_shard_bytes: int | None
    max_shard_samples: int | None
    #: A larger sample is an error. Default 1 GiB.
    max_sample_bytes: int | None
    #: In front of the numbers: ``train`` gives ``train-000000.tar``.
    name: str | None
    #: Removes what an earlier pack or writer left in the folder, and nothing else; with ``part``, what that part wrote.
    overwrite: bool | None
    #: The part of one dataset that this writer writes: ``"2/4"`` for the second of four. See :class:`shardtool.Writer`.
    part: str | None


#: The writer's name of each option, by Python's.
WRITER_OPTION_NAMES: Dict[str, str] = {name: _camel(name) for name in WriterOptions.__annotations__}

#: What PyTorch's DataLoader calls otherwise, or has no part in a loader.
_OF_DATALOADER = {
    "num_workers": "workers=8 has so many threads decode",
    "drop_last": 'last_batch="drop" leaves out the rows that fill no batch',
    "sampler": "order=array takes the numbers of samples in the order in which they come",
    "batch_sampler": "order=array takes the numbers of samples in the order in which they come",
    "prefetch_factor": "prefetch_batches=4 has so many made ahead",
    "persistent_workers": "its workers stay from one epoch to the next",
    "collate_fn": 'collate="list" gives the images of a batch one by one',
    "generator": "seed=42 says in which order samples come",
}


def options_for_reader(options: Mapping[str, Any], hold: int) -> Dict[str, Any]:
    """Options as the reader has them. ``hold`` batches may be in use at once, so there is a slot more for each but one.

    Raises TypeError for a name that is no option.
    """
    given: Dict[str, Any] = {"fields": [], "prefetchBatches": 4}
    workers = _workers_of_this_rank()
    if workers is not None:
        given["workers"] = workers
    for name, value in options.items():
        if name not in OPTION_NAMES:
            near = difflib.get_close_matches(name, OPTION_NAMES, n=1)
            if name in _OF_DATALOADER:
                hint = f": {_OF_DATALOADER[name]}."
            else:
                hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(OPTION_NAMES)}."
            raise TypeError(f"A loader has no option {name!r}{hint}")
        if value is not None:
            given[OPTION_NAMES[name]] = _plain(name, value)
    if isinstance(given["prefetchBatches"], int):
        given["prefetchBatches"] += hold - 1
    return given


def _plain(name: str, value: Any) -> Any:
    if name == "transform" and callable(value):
        raise TypeError(
            "The transform of a loader is the name of a preset or a list of steps, since another process does it, not "
            f"{value!r}. shardtool.Dataset takes functions; steps={{...}} has a loader run functions of JavaScript."
        )
    if name == "transform" and not isinstance(value, str):
        return [_step(step) for step in value]
    if name == "buckets" and isinstance(value, Mapping):
        return {_camel(key): part for key, part in value.items()}
    if name == "annotations":
        return {_camel(key): _camel_keys(part) for key, part in value.items()}
    if name == "weights":
        if not isinstance(value, Mapping):
            return _numbers(name, value, whole=False)
        # Pairs: JSON's objects have no keys but text, and the class number 10 is not the class named "10".
        return [[_class(name, cls), weight] for cls, weight in value.items()]
    if name == "order":
        return _numbers(name, value, whole=True)
    if name == "cache":
        return os.path.abspath(os.fspath(value))
    if name == "repeat" and value == math.inf:
        return "Infinity"
    if name in ("classes", "keys", "fields", "more_images", "masks"):
        if isinstance(value, (str, bytes)):
            raise TypeError(f"{name} is a list: [{value!r}].")
        return [_class(name, cls) for cls in value] if name == "classes" else list(value)
    return value


def _numbers(name: str, value: Any, whole: bool) -> List[Any]:
    """An array of one dimension as a list, whatever kind of array (numpy, torch, a list) it is."""
    import numpy as np

    wrong = f"{name} is an array of {'whole ' if whole else ''}numbers, of one dimension"
    if isinstance(value, (str, bytes, Mapping)) or callable(value):
        raise TypeError(f"{wrong}, not {value!r}.")
    try:
        array = np.asarray(value if hasattr(value, "__array__") else list(value))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{wrong}: {error}.") from None
    if array.ndim != 1 or (array.size > 0 and array.dtype.kind not in ("iu" if whole else "iuf")):
        raise TypeError(f"{wrong}, not one of {array.dtype} and shape {array.shape}.")
    plain: List[Any] = array.tolist()
    return plain


def _camel_keys(part: Any) -> Any:
    return {_camel(key): value for key, value in part.items()} if isinstance(part, Mapping) else part


def _class(option: str, cls: Any) -> str | int:
    """A class by its name or its number, whatever kind of whole number that is."""
    if isinstance(cls, str):
        return cls
    if isinstance(cls, numbers.Integral) and not isinstance(cls, bool):
        return int(cls)
    raise TypeError(f"{option}: a class is a str (its name) or an int (its number), not {cls!r}.")


def _step(step: Mapping[str, Any]) -> Any:
    """A step of a transform: ``random_resized_crop`` and ``max_size`` are as good as the reader's own spelling."""
    if not isinstance(step, Mapping):
        return step
    plain = {_camel(key): value for key, value in step.items()}
    if isinstance(plain.get("name"), str):
        plain["name"] = _camel(plain["name"])
    return plain


def sample_options_for_reader(options: Mapping[str, Any]) -> Dict[str, Any]:
    """Those of single samples, as the reader has them."""
    return {OPTION_NAMES[name]: _plain(name, value) for name, value in options.items() if value is not None}


def seen_for_reader(
    overlay: str | None,
    split: str | None,
    layout: str | None,
    features: Mapping[str, str] | None,
    exclude_keys: Iterable[str] | None,
    max_sample_bytes: int | None,
    storage: Mapping[str, Any] | None,
) -> Dict[str, Any]:
    """What is seen of a place, and how it is asked, as the reader has it."""
    seen: Dict[str, Any] = {"overlay": overlay, "split": split, "layout": layout, "maxSampleBytes": max_sample_bytes}
    seen["features"] = None if features is None else dict(features)
    seen["excludeKeys"] = None if exclude_keys is None else list(exclude_keys)
    seen["storage"] = None if storage is None else storage_for_reader(storage)
    return {name: value for name, value in seen.items() if value is not None}


def storage_for_reader(storage: Mapping[str, Any]) -> Dict[str, Any]:
    """How remote locations are asked, as the reader has it. Raises TypeError for a name that is none."""
    names = {name: _camel(name) for name in ("endpoint_url", "region", "unsigned", "requester_pays")}
    for name in storage:
        if name not in names:
            raise TypeError(f"storage has no {name!r}; there are {', '.join(names)}.")
    return {names[name]: value for name, value in storage.items() if value is not None}


def _workers_of_this_rank() -> int | None:
    """The ranks of one machine (torchrun counts them) share its cores. None: the reader takes all."""
    ranks = os.environ.get("LOCAL_WORLD_SIZE", "")
    if not ranks.isdigit() or int(ranks) < 2:
        return None
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, cores // int(ranks))


def place(location: str | os.PathLike[str]) -> str:
    """A place, whatever becomes of the working directory."""
    text = os.fspath(location)
    # s3://bucket/shards is not below the working directory.
    return text if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text) else os.path.abspath(text)


def absolute(location: Location) -> Union[str, List[str]]:
    """Where a dataset is, whatever becomes of the working directory."""
    if isinstance(location, (str, os.PathLike)):
        return place(location)
    return [place(file) for file in location]
