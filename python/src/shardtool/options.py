"""Options of :class:`shardtool.Loader`, except those that only Python has.

The options are those of the reader (packages/reader/src/loader/options.ts), which checks them and has the defaults.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Mapping, Sequence, TypedDict, Union

if TYPE_CHECKING:
    from typing import Literal

    from numpy.typing import ArrayLike

    from .steps import Step

#: A preset (``"train224"``, ``"timm/resnet50-a1"``), a JSON file with a list of steps, ``"raw"``, or a list of steps:
#: ``[{"name": "resize", "size": 256}, ...]``.
if TYPE_CHECKING:
    Transform = Union[str, Sequence[Union[Step, Mapping[str, Any]]]]
else:
    Transform = Union[str, Sequence[Mapping[str, Any]]]

#: A pipeline of torchvision, timm or open_clip, or a list of transforms and steps: see :func:`shardtool.steps_from`.
ForeignTransform = Union[Callable[..., Any], Sequence[Union[Callable[..., Any], Mapping[str, Any]]]]

#: A rule (``{"area": 1024 * 1024, "step": 64, "max_ratio": 2, "crop": "random"}``), a list of sizes, each
#: ``[height, width]``, or ``{"sizes": [...], "crop": "center"}``.
Buckets = Union[Mapping[str, Any], Sequence[Sequence[int]]]


class _CommonOptions(TypedDict, total=False):
    #: Rows of this rank's batches. Default: 64.
    batch_size: int | None
    #: Rows of a batch over all ranks, instead of ``batch_size``.
    global_batch_size: int | None
    #: Seed of the order and of all random numbers, together with the epoch. Default: 0.
    seed: int | None
    #: The first epoch. Default: 0.
    epoch: int | None
    #: Number of epochs in one loop. After ``load_state_dict``, the rest of the resumed epoch is the first. Default: 1;
    #: ``math.inf`` is allowed.
    epochs_per_loop: float | None
    #: Shuffles the samples; False keeps the order on disk. Default: True.
    shuffle: bool | None
    #: The unit that is shuffled over the whole dataset. By default it depends on the sizes of the shards.
    shuffle_unit: Literal["sample", "shard", "chunk"] | None
    #: Number of streams that are read concurrently, over all ranks. Default: the least common multiple of 192 and
    #: ``world_size``.
    streams: int | None
    #: Number of samples in the shuffle buffers of all streams together. Default: the number that makes blocks of
    #: about 2 MiB.
    shuffle_buffer_size: int | None
    #: Samples in a block of a stream, instead of ``shuffle_buffer_size``.
    block_samples: int | None
    #: Rank of this process, and number of ranks. Default: those of torch.distributed if it is initialised when a loop
    #: begins, RANK and WORLD_SIZE (torchrun), LOCAL_RANK and WORLD_SIZE (Lightning), SLURM_PROCID and SLURM_NTASKS
    #: (srun), otherwise 0 of 1. If two of these disagree, that is an error.
    rank: int | None
    world_size: int | None
    #: How an incomplete last batch is handled. Default: ``partial``. With more than one rank: ``pad``.
    last_batch: Literal["pad", "drop", "partial"] | None
    #: Batches of several sizes. All images of a batch have one size. An image gets the size whose aspect ratio is
    #: nearest; it is resized to cover this size, and cropped. ``batch.crop`` is the part of the image that a row shows.
    #: The transform must not set a size.
    aspect_buckets: Buckets | None
    #: With ``aspect_buckets``: memory limit for encoded samples that wait for their batch after their block was freed.
    #: Default: 256 MiB.
    hold_bytes: int | str | None
    #: Number of samples of an epoch, taken from the endless sequence of passes. With ``weights``, each sample
    #: of the dataset gets a share of them by its weight.
    samples_per_epoch: int | None
    #: Repeated augmentation: each sample comes this many times in an epoch, with different random numbers, in
    #: consecutive positions of the order. So with several ranks, they get different ones. ``samples_per_epoch`` counts
    #: every repetition. Not for mixtures, aspect-ratio buckets, groups of ``indices`` and ``on_bad="replace"``.
    #: Default: 1.
    repeats: int | None
    #: Only these classes: a str is a name, an int a class number.
    classes: Sequence[str | int] | None
    #: Only these keys.
    keys: Sequence[str] | None
    #: Only samples that match this expression over the columns of the index: ``width >= 256 and cls in (3, 7)``.
    where: str | None
    #: Relative frequency of samples: by class (a str is its name, an int its number; default 1), or as an array with
    #: one number per sample, as for ``WeightedRandomSampler``. The number of samples in an epoch is the number of
    #: samples with a weight above 0, or ``samples_per_epoch``. If that is the sum of whole weights, each sample occurs
    #: exactly as often as its weight.
    weights: Mapping[str | int, float] | ArrayLike | None
    #: A custom order for every epoch, over all ranks: indices of samples, as in :class:`shardtool.Dataset`. An index
    #: may be repeated. Groups, an array [n, k], stay together: each goes to one rank and into one batch, in consecutive
    #: rows.
    indices: ArrayLike | None
    #: Number of decode workers. Default: the cores that the process may use (a container may limit them), divided by
    #: LOCAL_WORLD_SIZE.
    workers: int | None
    #: Number of batches that are prepared ahead, including the one in use. Default: 4.
    prefetch_batches: int | None
    #: When to check the crc32 of delivered images, masks and fields. Default: ``first-epoch``.
    checksum: Literal["first-epoch", "always", "never"] | None
    #: The field that is the image. Default: the sample's first field of an image kind. False: batches have only fields,
    #: ``(fields, labels)``, with npy as arrays [n, ...]. That is also the default if the samples have no image.
    image: str | Literal[False] | None
    #: Image fields, for a varying number of images per sample: names, or patterns in which ``*`` stands for any
    #: characters, such as ``["img.*"]``. ``batch.images`` has the images of all samples, and those of row i are
    #: ``offsets[i]`` up to ``offsets[i + 1]``. A sample may have no image. Each image has its own random numbers.
    images: Sequence[str] | None
    #: With ``images``: largest number of images of a sample; one with more is a bad sample. Default: the number of
    #: matching fields.
    max_images: int | None
    #: Further fields that are images of the same size, transformed like the image: ``batch.extra_images``.
    extra_images: Sequence[str] | None
    #: Fields that are masks of the image's size, which are cropped, flipped and rotated like it: ``batch.masks``.
    masks: Sequence[str] | None
    #: Boxes, keypoints and polygons that move with the image: ``batch.boxes``, ``batch.targets()`` and others.
    annotations: Mapping[str, Any] | None
    #: Transforms that replace ``transform`` from an epoch on: ``[{"epoch": 16, "transform": [...]}, ...]``. All must
    #: produce the same dtype and layout.
    schedule: Sequence[Mapping[str, Any]] | None
    #: Several views of each image from one decode, in named groups, instead of ``transform``: ``{"global": {"count": 2,
    #: "transform": [...]}, "local": {"count": 8, "transform": [...]}}``. The value may also be the name of views such
    #: as ``dinov2``, or a JSON file. The result is ``batch.views``.
    views: Mapping[str, Any] | str | None
    #: With ``views``: names of steps whose random draws are recorded in ``batch.draws``, such as ``randomResizedCrop``.
    draws: Sequence[str] | None
    #: Custom steps in JavaScript that run in the workers: ``{"pixels": {"module": "steps.mjs"}}``.
    custom_steps: Mapping[str, Mapping[str, Any]] | None
    #: Mixes each image with others of its batch: ``{"name": "mixup", "alpha": 0.2}``, ``{"name": "timm_mixup",
    #: "mixup_alpha": 0.8, "cutmix_alpha": 1.0, "num_classes": 1000}``, ``{"name": "mosaic"}`` or ``{"name":
    #: "copy_paste"}`` with boxes and masks. A list: each batch uses one of them. ``{"name": "sequence", "mixes":
    #: [...]}`` applies one after another. ``batch.mix`` describes the result.
    mix: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None
    #: Labels from a field or column instead of class numbers, float32: numbers for regression, ``"age"``, or lists of
    #: class numbers as 0 and 1, ``{"field": "tags", "classes": 80}``.
    labels: str | Mapping[str, Any] | None
    #: Fields and label columns that are delivered as ``batch.fields``. Default: none.
    fields: Sequence[str] | None
    #: ``random`` chooses one of several captions (a JSON list, or lines of text) per epoch.
    caption_sampling: Literal["random"] | None
    #: How to handle a bad sample. ``skip`` marks its row as invalid, ``replace`` takes the next good sample of the same
    #: block. Default: ``raise``.
    on_bad: Literal["raise", "skip", "replace"] | None
    #: Largest number of pixels of an image; larger images are bad samples. Default: 178,956,970, as in Pillow.
    max_pixels: int | None
    #: Channels of decoded images: 1 is luma (JPEGs decode no colour at all), 3 RGB, 4 RGB and alpha; any other number
    #: for arrays and TIFFs with that number of channels. Default: 3. Part of a state.
    channels: int | None
    #: Type of decoded values, before ``toDtype`` and ``normalize``. Values are not scaled. Default: ``uint8``.
    #: Part of a state.
    pixel_dtype: Literal["uint8", "uint16", "int16", "float32"] | None
    #: Colour behind transparent pixels, 0 to 255 or [red, green, blue]. Default: alpha is dropped, as Pillow's
    #: ``convert("RGB")`` does.
    background: int | Sequence[int] | None
    #: The size at which JPEGs are decoded. ``exact``: full size, with Pillow's pixels. ``scaled`` (default): 1/2, 1/4
    #: or 1/8 of their size if that is at least twice the size that the transform needs. ``fast``: the same if it is at
    #: least the size that the transform needs (docs/transforms.md). Part of a state.
    decode: Literal["exact", "scaled", "fast"] | None
    #: Rotates images by their EXIF orientation, or by that of their XMP if EXIF has none. Default: False, as in
    #: torchvision. With ``aspect_buckets``: True.
    apply_exif_orientation: bool | None
    #: Decodes crops of JPEGs with the crop indexes of the shards, if they have any (``pack --index crops``). This is
    #: faster and gives the same pixels. Default: True on fast local storage. On slow or remote storage False, because a
    #: crop index adds bytes to fetch.
    crop_index: bool | None
    #: Maximum memory for encoded samples: a number of bytes, or a str such as ``"4GiB"``. Default: half of the
    #: machine's memory. If batches consist of images alone and the shards are on a local disk, there are no read
    #: buffers by default: workers read the images out of the system's page cache.
    read_buffer_bytes: int | str | None
    #: Number of blocks that are read at a time. Default: 4 on a local disk. Otherwise it is raised as long as that
    #: increases the rate.
    read_concurrency: int | None
    #: A folder on a local disk (or in memory) for fetched data. All processes and datasets can share it.
    cache: str | os.PathLike[str] | None
    #: Maximum size of the cache for all processes together: a number of bytes, or a str such as ``"200GB"``. Default:
    #: half of the free space.
    cache_size: int | str | None


class _Transformed(TypedDict, total=False):
    #: A preset, a list of steps, or a pipeline of torchvision, timm or open_clip, which is translated into steps.
    #: Default: images are decoded as they are, which needs images of one size or ``collate="list"``.
    transform: Transform | ForeignTransform | None


class _Collated(TypedDict, total=False):
    #: ``stack`` (default): one array of images of one size. ``list``: an array for each image, copied.
    collate: Literal["stack", "list"] | None


class LoaderOptions(_CommonOptions, _Transformed, _Collated, total=False):
    """All are optional; ``None`` means the default."""


class Seen(TypedDict, total=False):
    """Options that select the samples of a location, and those of requests. :class:`shardtool.Loader` and
    :class:`shardtool.Dataset` have them."""

    overlay: str | None
    split: str | None
    exclude_keys: Iterable[str] | None
    layout: str | None
    features: Mapping[str, str] | None
    max_sample_bytes: int | str | None
    storage: Mapping[str, Any] | None
    version: str | None


class _PythonOptions(Seen, total=False):
    with_keys: bool
    reuse: bool
    device: str
    dtype: Literal["uint8", "float16", "bfloat16", "float32"] | None
    mean: Sequence[float] | None
    std: Sequence[float] | None
    pin_memory: bool
    python_transform: Callable[..., Any] | None
    python_workers: int | None
    python_timeout: float | None
    python_start_method: Literal["fork", "spawn", "forkserver"] | None
    metrics: Mapping[str, Any] | Literal["otlp", False] | None


class LoaderArguments(LoaderOptions, _PythonOptions, total=False):
    """All keyword arguments of :class:`shardtool.Loader` except ``output``."""


class ListArguments(_CommonOptions, _Transformed, _PythonOptions, total=False):
    """The same options with ``collate="list"``, which determines the type of the images."""


class RawListArguments(_CommonOptions, _PythonOptions, total=False):
    """The same options with both."""


class RawArguments(_CommonOptions, _Collated, _PythonOptions, total=False):
    """The same options with ``transform="raw"``."""


class DatasetArguments(Seen, total=False):
    """All keyword arguments of :class:`shardtool.Dataset` except ``transform`` and ``output``."""

    target_transform: Callable[[int], Any] | None
    fields: Sequence[str]
    masks: Sequence[str]
    image: str | Literal[False] | None
    seed: int
    decode: Literal["exact", "scaled", "fast"] | None
    apply_exif_orientation: bool | None
    max_pixels: int | None
    channels: int | None
    pixel_dtype: Literal["uint8", "uint16", "int16", "float32"] | None
    background: int | Sequence[int] | None


def camel(name: str) -> str:
    """Converts a name to camelCase, as the reader spells it."""
    return re.sub(r"_(\w)", lambda letter: letter.group(1).upper(), name)


#: Names of options in Python, and in the reader.
OPTION_NAMES: Dict[str, str] = {name: camel(name) for name in LoaderOptions.__annotations__}


class WriterOptions(TypedDict, total=False):
    """Options of :class:`shardtool.Writer` in addition to its named parameters. ``None`` means the default."""

    #: Format of the shards. Default: ``tar``.
    format: Literal["tar", "lmdb", "msgpack"] | None
    #: Content of LMDB values: all fields (default), or only the image.
    lmdb_values: Literal["sample", "image"] | None
    #: Indexes for other loaders of tars.
    index: Sequence[Literal["wids", "dali", "crops"]] | None
    #: Maximum size of a shard, measured as a tar: a number of bytes, or a str such as ``"64MiB"``. Default: 256 MiB.
    max_shard_bytes: int | str | None
    max_shard_samples: int | None
    #: Maximum size of a sample; a larger sample is an error. Default: 1 GiB.
    max_sample_bytes: int | str | None
    #: Prefix of the shard names: ``train`` gives ``train-000000.tar``.
    name: str | None
    #: Whether to remove the output of an earlier pack or writer in the folder; with ``part``, the output of that part.
    overwrite: bool | None
    #: For samples without images: the field that every sample must have, such as ``npy``, ``txt`` or ``latent.npy``.
    #: Default: every sample must have an image.
    primary: str | None
    #: The part of one dataset that this writer writes: ``"2/4"`` for the second of four, or ``"auto"``: the
    #: part that the environment variables of the job scheduler define. See :class:`shardtool.Writer`.
    part: str | None
    #: Identifies the run of a distributed engine whose tasks write the parts.
    #: :class:`shardtool.parts.PartWriter` sets it.
    job: str | None


#: Names of options in Python, and in the writer.
WRITER_OPTION_NAMES: Dict[str, str] = {name: camel(name) for name in WriterOptions.__annotations__}
