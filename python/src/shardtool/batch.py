"""Batches, which a loop over a loader yields."""

from __future__ import annotations

import ast
import math
from types import MappingProxyType, ModuleType
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Generic,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Tuple,
    TypeVar,
    cast,
)

import numpy as np
from numpy.typing import NDArray

from .bridge.frames import Frame
from .bridge.held_slots import MakeArray
from .errors import BadSampleError, OptionError

if TYPE_CHECKING:
    from typing import Literal

    import typing_extensions

    #: Type of the arrays of a batch: torch.Tensor, numpy's NDArray, or :class:`DLPackArray`.
    Array = typing_extensions.TypeVar("Array", default=Any)
    #: Type of its images: one such array, or a list with an entry for each image.
    Images = typing_extensions.TypeVar("Images", default=Array)
else:
    Array, Images = TypeVar("Array"), TypeVar("Images")


class Mix(NamedTuple):
    """How a batch was mixed. Row i is ``weight`` times its own image and label, plus 1 - weight times those of another
    row. The other row is the row before (for row 0, the last row); with ``timm_mixup``, it is row n - 1 - i. With
    ``mosaic``, ``copy_paste`` and ``sequence``, rows keep their own labels, and ``weights`` have the share of the area
    that shows the row's own image; with ``sequence``, the product of the weights of its mixes."""

    name: str
    #: The weight of the first row. All rows have the same weight, except with the modes ``pair`` and ``elem`` of
    #: ``timm_mixup``.
    weight: float
    #: int64 [n], class numbers of the other rows.
    other_labels: Any
    #: float32 [n], the weight of each row.
    weights: Any


class Polygons(NamedTuple):
    """The polygons of all objects of a batch, one after the other."""

    #: float32 [p, 2]: x and y of all corners.
    points: Any
    #: int64 [q + 1]: polygon i has the corners ``point_offsets[i]`` to ``point_offsets[i + 1] - 1``.
    point_offsets: Any
    #: int64 [n + 1]: object i has the polygons ``object_offsets[i]`` to ``object_offsets[i + 1] - 1``.
    object_offsets: Any

    def lists(self) -> List[List[Any]]:
        """For each object, a list of its polygons, which are arrays [p, 2]."""
        ends = [int(end) for end in self.point_offsets]
        rings = [self.points[at:end] for at, end in zip(ends, ends[1:])]
        objects = [int(end) for end in self.object_offsets]
        return [rings[at:end] for at, end in zip(objects, objects[1:])]


def _like(array: NDArray[Any], other: Any) -> Any:
    """The array as a tensor on the device of ``other``, if ``other`` is a tensor."""
    if isinstance(other, np.ndarray):
        return array
    tensor = _torch().from_numpy(array)
    device = getattr(other, "device", None)
    return tensor if device is None else tensor.to(device)


def _spread(rows: Any, mask: NDArray[Any], fill: float) -> Any:
    """Puts the rows, one after the other, where the mask is true, and ``fill`` elsewhere."""
    if hasattr(rows, "new_full"):
        # A tensor may be on a device. It is not copied to the host.
        spread = rows.new_full((mask.size, *rows.shape[1:]), fill)
        spread[_like(np.flatnonzero(mask), rows)] = rows
        return spread.reshape(*mask.shape, *rows.shape[1:])
    values = np.asarray(rows)
    padded = np.full(mask.shape + values.shape[1:], fill, values.dtype)
    padded[mask] = values
    return _like(padded, rows)


class Crop(NamedTuple):
    """The part of its image that each row shows, in pixels, int64 [n, 2] each. SDXL is conditioned on these values."""

    #: [height, width] of the image, after its EXIF orientation if that is applied.
    original_size: Any
    #: [height, width] to which it was resized.
    resized_size: Any
    #: [top, left] corner of the row in the resized image. If the row is mirrored, in the mirror image.
    top_left: Any


class Batch(Tuple[Any, ...], Generic[Array, Images]):
    """``(images, labels)``, or ``(images, labels, keys)`` with ``with_keys=True``. For samples without images,
    ``(fields, labels)``, where ``fields`` is a dictionary by name. Further values are attributes.

    The batch is yours to keep: the reader reuses the memory of its images only when nothing refers to them. With
    ``reuse=True``, they are overwritten when the next batch is requested. All other values are always copies.

    For a type checker it is a ``Batch[torch.Tensor]``, or a batch of the type that ``output`` sets. If ``images`` is a
    list, the second parameter is the type of the list: ``Batch[Any, List[bytes]]`` with ``transform="raw"``. The values
    that it unpacks to have the type Any.
    """

    #: The epoch of these rows, and the number of the batch, counted from the start of the epoch or of the resumed part.
    epoch: int = 0
    batch_index: int = 0
    #: bool [n]. False marks a row that does not count: a repeated one of a padded last batch, or a bad sample that was
    #: skipped. None if a framework has rebuilt the batch.
    valid: Any = None
    #: int64 [n], the index of each sample in its dataset.
    indices: Any = None
    #: For a mixture, int64 [n]: the index of each sample's dataset in the list of datasets.
    dataset_index: Any = None
    #: With ``aspect_buckets``: the part of its image that each row shows.
    crop: Optional[Crop] = None
    #: With ``views``: for each group, by name, an array like ``images`` for each of its views. ``images`` is the first
    #: view of the first group.
    views: Mapping[str, List[Array]] = MappingProxyType({})
    #: With ``draws``: for each group, by name, the recorded draws for each of its views, by the name of the step. A
    #: crop is float32 [n, 4], x, y, width and height in pixels of the image; a flip is float32 [n], 1 or 0.
    draws: Mapping[str, List[Mapping[str, Array]]] = MappingProxyType({})
    #: With ``extra_images`` and ``masks``, by field name: arrays like ``images``, and uint8 [n, h, w]. They are yours
    #: to keep like ``images``.
    extra_images: Mapping[str, Array] = MappingProxyType({})
    masks: Mapping[str, Array] = MappingProxyType({})
    #: With ``mix``: how the images were mixed.
    mix: Optional[Mix] = None
    #: With ``num_classes`` of ``mix``: float32 [n, num_classes], the share of each class.
    soft_labels: Any = None
    #: With ``annotations``: the objects on the images, one row after the other; otherwise None. With ``device``, boxes,
    #: labels, keypoints and the points of polygons are on the device, and all offsets are on the host. int64 [size +
    #: 1]: row i has the objects ``offsets[i]`` to ``offsets[i + 1] - 1``. With ``images``: row i has these images.
    offsets: Any = None
    #: float32 [n, 4] in ``box_format``; int64 [n] class numbers; int64 [n] index of each object among those of its
    #: sample.
    boxes: Any = None
    box_labels: Any = None
    box_rows: Any = None
    #: With ``mix``, int64 [n]: the row of the batch whose sample each object is from.
    box_sources: Any = None
    #: float32 [n, count, 3]: x, y and the third number of the dataset (COCO: 0 not labelled, 1 hidden, 2 visible).
    keypoints: Any = None
    polygons: Optional[Polygons] = None
    #: With ``python_transform``, uint64 [n]: the seed of each row, from the loader's seed, the epoch and the sample.
    row_seeds: Any = None
    #: With ``fields``, by name: numbers as an array [n] (int64, or float64 with NaN for a sample without a value), npy
    #: as an array [n, ...] if all have one shape; otherwise a list with the value of each row, and None for a sample
    #: without a value. For samples without images, npy is always an array [n, ...], unless ``collate`` is ``"list"``.
    fields: Mapping[str, Any] = MappingProxyType({})

    def image_lists(self) -> List[Array]:
        """With the option ``images``: for each row its images, an array [count, ...] over the memory of ``images``."""
        if self.offsets is None or self._has_objects():
            raise ValueError("Each row of the batch has one image: set the option images of the loader.")
        ends = [int(end) for end in self.offsets]
        images: Any = self.images
        return [images[at:end] for at, end in zip(ends, ends[1:])]

    def _has_objects(self) -> bool:
        objects = (self.boxes, self.box_labels, self.box_rows, self.keypoints, self.polygons)
        return any(values is not None for values in objects)

    def targets(self) -> List[Dict[str, Any]]:
        """For each image, the dictionary that torchvision's detection models take: ``boxes`` (with
        ``box_format="xyxy"``), ``labels`` and ``keypoints``, if they were requested, and ``polygons``, a list of arrays
        [p, 2] for each object."""
        if not self._has_objects():
            raise ValueError("The batch has no annotations: set the option annotations of the loader.")
        ends = [int(end) for end in self.offsets]
        polygons = None if self.polygons is None else self.polygons.lists()
        named = {"boxes": self.boxes, "labels": self.box_labels, "keypoints": self.keypoints, "polygons": polygons}
        given = {name: values for name, values in named.items() if values is not None}
        return [{name: values[at:end] for name, values in given.items()} for at, end in zip(ends, ends[1:])]

    def padded(self, fill: float = 0) -> Dict[str, Any]:
        """``boxes`` [size, most, 4], ``labels`` [size, most] and ``keypoints`` [size, most, count, 3], if they were
        requested. After the objects of each image, they contain ``fill`` (labels: -1). ``mask``, bool [size, most], is
        true for objects.
        """
        if not self._has_objects():
            raise ValueError("The batch has no annotations: set the option annotations of the loader.")
        offsets = np.asarray(self.offsets)
        counts = np.diff(offsets)
        mask = np.arange(counts.max(initial=0)) < counts[:, None]
        named = {"boxes": self.boxes, "labels": self.box_labels, "keypoints": self.keypoints}
        given = {name: values for name, values in named.items() if values is not None}
        padded = {name: _spread(rows, mask, -1 if name == "labels" else fill) for name, rows in given.items()}
        return {"mask": _like(mask, next(iter(given.values()), self.offsets)), **padded}

    @property
    def images(self) -> Images:
        """None if the samples have no images."""
        images: Any = None if self[0] is self.fields else self[0]
        return cast("Images", images)

    @property
    def labels(self) -> Array:
        """int64 [n], class numbers; -1 for a sample without a class. With the option ``labels``: float32 [n] or [n,
        k]."""
        labels: Array = self[1]
        return labels

    @property
    def keys(self) -> Optional[List[str]]:
        return self[2] if len(self) > 2 else None


class Arrays(NamedTuple):
    """How numpy's arrays are converted to the requested output."""

    values: Callable[[NDArray[Any]], Any]
    #: Images of layout nhwc are shown as nchw: the same memory, other strides.
    shows_channels_first: bool


def arrays(output: str) -> Arrays:
    """``torch``, ``numpy`` or ``dlpack``. Raises ValueError for any other output, and ImportError if torch is
    missing."""
    if output == "numpy":
        return Arrays(lambda array: array, shows_channels_first=False)
    if output == "dlpack":
        return Arrays(DLPackArray, shows_channels_first=False)
    if output == "torch":
        return Arrays(_tensor_of(_torch()), shows_channels_first=True)
    raise ValueError(f'output must be "torch", "numpy" or "dlpack", not {output!r}.')


def _tensor_of(torch: ModuleType) -> Callable[[NDArray[Any]], Any]:
    """How arrays become tensors over the same memory. torch has uint16 since 2.3."""

    def tensor(array: NDArray[Any]) -> Any:
        if array.dtype == np.uint16 and not hasattr(torch, "uint16"):
            raise OptionError(
                f"torch {torch.__version__} has no uint16: end the transform with toDtype float32, or choose "
                'output="numpy".'
            )
        return torch.from_numpy(array)

    return tensor


def _torch() -> ModuleType:
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            'A loader returns torch tensors by default: install torch, or set output="numpy" or "dlpack".'
        ) from error
    return torch


class DLPackArray:
    """An array for libraries that support DLPack: ``jax.dlpack.from_dlpack(images)``, ``cupy.from_dlpack(images)``."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array

    @property
    def shape(self) -> Tuple[int, ...]:
        return self._array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self._array.dtype
        return dtype

    def __dlpack__(self, **how: Any) -> Any:
        return self._array.__dlpack__(**how)

    def __dlpack_device__(self) -> Tuple[int, int]:
        return self._array.__dlpack_device__()

    def __len__(self) -> int:
        return len(self._array)


def read_batch(frame: Frame, in_slot: MakeArray, to: Arrays) -> Batch:
    """The batch of a frame (packages/reader/src/bridge/batch-frame.ts). ``in_slot`` makes the arrays over its slot.
    Without images the first part of the batch is its fields."""
    header, rest = frame
    take = _Cutter(rest)
    size = header["size"]
    labels = np.frombuffer(take(4 * size), np.int32).astype(np.int64)
    valid = np.frombuffer(take(size), np.uint8).astype(np.bool_)
    numbers = np.frombuffer(take(8 * size), np.float64).astype(np.int64)
    source = np.frombuffer(take(4 * size), np.int32).astype(np.int64) if header["isMixture"] else None
    crops = [np.frombuffer(take(8 * size), np.int32).astype(np.int64).reshape(-1, 2) for _ in range(header["crops"])]
    parts: List[Any] = [_images(header, in_slot, take, to), to.values(labels)]
    if header["keys"] is not None:
        parts.append(header["keys"])
    batch: Batch = Batch(parts)
    batch.epoch, batch.batch_index = header["epoch"], header["index"]
    batch.valid, batch.indices = to.values(valid), to.values(numbers)
    batch.dataset_index = None if source is None else to.values(source)
    if crops:
        batch.crop = Crop(*map(to.values, crops))
    batch.extra_images, batch.masks = _companions(header, in_slot, to)
    if header["mix"] is not None:
        others = np.frombuffer(take(4 * size), np.int32).astype(np.int64)
        mix, weights = header["mix"], np.frombuffer(take(8 * size), np.float64)
        batch.mix = Mix(
            {"timmMixup": "timm_mixup", "copyPaste": "copy_paste"}.get(mix["name"], mix["name"]),
            mix["weight"],
            to.values(others),
            to.values(weights.astype(np.float32)),
        )
        if mix["numClasses"] is not None:
            soft = soft_labels((labels, others), weights, valid, mix["numClasses"], mix["labelSmoothing"])
            batch.soft_labels = to.values(soft)
    if header["views"]:
        _add_views(batch, header["views"], in_slot, take, to)
    if header["objects"] is not None:
        _add_objects(batch, header["objects"], take, to)
    if header["hasRowSeeds"]:
        words = np.frombuffer(take(8 * size), np.uint32).astype(np.uint64).reshape(-1, 2)
        batch.row_seeds = (words[:, 0] << np.uint64(32)) | words[:, 1]
    shape = header["labelShape"]
    if shape is not None:
        values = np.frombuffer(take(4 * math.prod(shape)), np.float32).reshape(shape)
        # Arrays over a frame are read-only.
        batch = _with_parts(batch, batch[0], to.values(values.copy()), *batch[2:])
    fields = {array["name"]: _stacked(array, in_slot, to) for array in header["arrays"]}
    fields.update((field["name"], _field(field, size, take, to)) for field in header["fields"])
    batch.fields = fields
    return batch if batch[0] is not None else _with_parts(batch, fields, *batch[1:])


def _stacked(array: Dict[str, Any], in_slot: MakeArray, to: Arrays) -> Any:
    """Rows of one shape, over the slot."""
    return _array_value(in_slot(array["offset"], array["dtype"], tuple(array["shape"])), to)


def _with_parts(batch: Batch, *parts: Any) -> Batch:
    """The batch with other parts and the same attributes."""
    made: Batch = Batch(parts)
    made.__dict__.update(batch.__dict__)
    return made


def soft_labels(
    labels: Tuple[NDArray[np.int64], NDArray[np.int64]],
    weights: NDArray[np.float64],
    valid: NDArray[np.bool_],
    classes: int,
    smoothing: float,
) -> NDArray[np.float32]:
    """Soft labels float32 [n, classes] (packages/reader/src/transform/mixes/soft-labels.ts): ``weights`` times the own
    label, plus 1 - weights times the other one. Raises ValueError for a label that is not a class."""
    parts = weights.astype(np.float32)[:, None], (1 - weights).astype(np.float32)[:, None]
    soft = np.zeros((len(weights), classes), np.float32)
    for numbers, part in zip(labels, parts):
        is_class = (numbers >= 0) & (numbers < classes)
        bad = numbers[~is_class & valid & (part[:, 0] > 0)]
        if bad.size:
            raise ValueError(
                f"The label {bad[0]} is not one of the {classes} classes of mix: give all samples a class, and set "
                "num_classes to the number of classes."
            )
        hot = np.full_like(soft, smoothing / classes)
        hot[np.flatnonzero(is_class), numbers[is_class]] = 1 - smoothing + smoothing / classes
        soft += hot * part
    return soft


def _images(header: Dict[str, Any], in_slot: MakeArray, take: _Cutter, to: Arrays) -> Any:
    """One array over the slot; a list of arrays or of encoded images, which are copies; or None without images."""
    if header["encoded"] is not None:
        return [bytes(take(length)) for length in header["encoded"]]
    dtype, layout = header["dtype"], header["layout"]
    if header["images"] is not None:
        images = in_slot(header["images"]["offset"], dtype, tuple(header["images"]["shape"]))
        return _shown(images, layout, to)
    if header["list"] is None:
        return None
    shapes = [(image["height"], image["width"]) for image in header["list"]]
    channels = header["channels"]
    return [_shown(_image(take, dtype, layout, (height, width, channels)), layout, to) for height, width in shapes]


def _add_views(batch: Batch, groups: List[Dict[str, Any]], in_slot: MakeArray, take: _Cutter, to: Arrays) -> None:
    views: Dict[str, List[Any]] = {}
    draws: Dict[str, List[Mapping[str, Any]]] = {}
    for group in groups:
        name, dtype, (count, *shape) = group["name"], group["dtype"], group["shape"]
        size = math.prod(shape) * np.dtype(dtype).itemsize
        offsets = [group["offset"] + view * size for view in range(count)]
        # The first view of the first group was already made.
        first = [] if views else [batch[0]]
        more = [_shown(in_slot(at, dtype, tuple(shape)), group["layout"], to) for at in offsets[len(first) :]]
        views[name] = first + more
        drawn = {step["name"]: _drawn(take, step["length"], count, shape[0]) for step in group["draws"]}
        draws[name] = [{step: to.values(values[view]) for step, values in drawn.items()} for view in range(count)]
    batch.views, batch.draws = views, draws


def _drawn(take: _Cutter, length: int, count: int, rows: int) -> NDArray[Any]:
    """[count, rows] or, with more than one value for each row, [count, rows, values]."""
    values = np.frombuffer(bytearray(take(4 * length)), np.float32)
    each = length // max(1, count * rows)
    return values.reshape((count, rows) if each == 1 else (count, rows, each))


def _companions(header: Dict[str, Any], in_slot: MakeArray, to: Arrays) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """The extra images, in the shape of the images, and the masks."""
    if header["images"] is None:
        return {}, {}
    shape = tuple(header["images"]["shape"])
    height_width = shape[1:3] if header["layout"] == "nhwc" else shape[2:4]

    def image(offset: int) -> Any:
        return _shown(in_slot(offset, header["dtype"], shape), header["layout"], to)

    def mask(offset: int) -> Any:
        return to.values(in_slot(offset, "uint8", (shape[0], *height_width)))

    return (
        {name: image(offset) for name, offset in header["extraImages"].items()},
        {name: mask(offset) for name, offset in header["masks"].items()},
    )


def _add_objects(batch: Batch, objects: Dict[str, Any], take: _Cutter, to: Arrays) -> None:
    floats = ("boxes", "keypoints", "points")
    found: Dict[str, Any] = {}
    for part in objects["arrays"]:
        name, data = part["name"], bytearray(take(4 * part["length"]))
        values = np.frombuffer(data, np.float32) if name in floats else np.frombuffer(data, np.int32).astype(np.int64)
        shape = {"boxes": (-1, 4), "points": (-1, 2), "keypoints": (-1, objects["keypoints"], 3)}.get(name, (-1,))
        found[name] = to.values(values.reshape(shape))
    batch.offsets, batch.box_rows, batch.box_sources = found["offsets"], found.get("boxRows"), found.get("boxSources")
    batch.boxes, batch.box_labels = found.get("boxes"), found.get("boxLabels")
    batch.keypoints = found.get("keypoints")
    if "points" in found:
        batch.polygons = Polygons(found["points"], found["pointOffsets"], found["objectOffsets"])


def _image(take: _Cutter, dtype: str, layout: str, size: Tuple[int, int, int]) -> NDArray[Any]:
    height, width, channels = size
    shape = size if layout == "nhwc" else (channels, height, width)
    length = height * width * channels * np.dtype(dtype).itemsize
    return np.frombuffer(bytearray(take(length)), dtype).reshape(shape)


def _shown(images: NDArray[Any], layout: str, to: Arrays) -> Any:
    if layout == "nhwc" and to.shows_channels_first:
        images = np.moveaxis(images, -1, -3)
    return to.values(images)


def _field(field: Dict[str, Any], size: int, take: _Cutter, to: Arrays) -> Any:
    """Numbers as one array, arrays of one shape as one array, and other values as a list with a value for each row."""
    if field["type"] is not None:
        return to.values(_numbers(np.frombuffer(take(8 * size), np.float64).copy(), field["type"]))
    values: List[Any] = field["values"]
    for row, sign in field.get("infinite", ()):
        values[row] = math.copysign(math.inf, sign)
    for at in field["bytes"]:
        data, array = bytes(take(at["length"])), at["array"]
        values[at["row"]] = data if array is None else _field_array(data, array)
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    if len(arrays) == size and len({(array.shape, array.dtype) for array in arrays}) == 1:
        return _array_value(np.stack(arrays), to)
    return [_array_value(value, to) if isinstance(value, np.ndarray) else value for value in values]


def _numbers(numbers: NDArray[np.float64], kind: str) -> NDArray[Any]:
    """int64 for a column of integers, if each row has one."""
    if kind != "int" or not np.isfinite(numbers).all():
        return numbers
    integers = numbers.astype(np.int64)
    return integers if np.array_equal(integers, numbers) else numbers


def _array_value(array: NDArray[Any], to: Arrays) -> Any:
    """The array in the requested output, or as a numpy array if torch does not have its dtype."""
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    try:
        return to.values(array)
    except (TypeError, OptionError):
        return array


def _field_array(data: bytes, array: Dict[str, Any]) -> NDArray[Any]:
    order: Literal["F", "C"] = "F" if array["fortranOrder"] else "C"
    return np.ndarray(array["shape"], _dtype(array["dtype"]), bytearray(data), order=order)


#: NumPy reads no longer header of a .npy file, because a long literal can exhaust the interpreter.
_LONGEST_DTYPE = 10_000


def _dtype(name: str) -> np.dtype[Any]:
    """The dtype of a ``.npy`` header: a name, or a list for structured arrays. The reader refuses Python objects."""
    if not name.startswith("["):
        return np.dtype(name)
    if len(name) > _LONGEST_DTYPE:
        raise BadSampleError(
            f"A structured array has a dtype of {len(name)} characters, but at most {_LONGEST_DTYPE} are read: save it "
            "with fewer fields."
        )
    dtype: np.dtype[Any] = np.lib.format.descr_to_dtype(ast.literal_eval(name))  # type: ignore[no-untyped-call, unused-ignore]
    return dtype


class _Cutter:
    """Cuts bytes off the front."""

    def __init__(self, rest: memoryview) -> None:
        self._rest = rest

    def __call__(self, length: int) -> memoryview:
        cut, self._rest = self._rest[:length], self._rest[length:]
        return cut
