"""Single samples of a dataset, by index or key, as in map-style datasets."""

from __future__ import annotations

import base64
import html
import io
from importlib import import_module
from types import GenericAlias, MappingProxyType
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Generic,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
    Union,
    cast,
    overload,
)

import numpy as np
from numpy.typing import NDArray

from .attributes import KnownAttributes
from .batch import Arrays, Batch, arrays
from .bridge.for_reader import sample_options_for_reader, seen_for_reader
from .bridge.foreign_names import FOREIGN_DATASET_NAMES, unknown_option
from .bridge.sample_reader import SampleReader
from .bridge.stored_images import ImagePlaces
from .draws import Draws
from .errors import OptionError
from .location import Location, absolute
from .options import DatasetArguments

if TYPE_CHECKING:
    from typing import Literal

    import torch
    import typing_extensions

    # Old versions of Pillow have no types; their images are Any.
    from PIL.Image import Image as PillowImage  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from typing_extensions import Unpack

    from .options import Transform

    #: Type of the image of a sample: torch.Tensor, numpy's NDArray, Pillow's Image, bytes, or the result of a function.
    Image = typing_extensions.TypeVar("Image", default=Any)
else:
    Image = TypeVar("Image")

#: Number of samples per request if many are read: enough to make requests cheap, and few enough to fit in memory.
_AT_ONCE = 64
#: Images of the grid in a notebook, and the largest one that is shown there, in bytes.
_SHOWN_IMAGES = 18
_SHOWN_BYTES = 1 << 18
#: Images with more pixels are decoded by the reader, because Pillow would warn about them.
_MAX_PIXELS = 1 << 26
_MIME = {"jpg": "jpeg", "jpeg": "jpeg", "png": "png", "webp": "webp", "gif": "gif", "avif": "avif"}


class Sample(Tuple[Any, ...], Generic[Image]):
    """``(image, label)``, or with fields or masks ``(image, label, more)``. Without an image ``(fields, label)``, where
    ``fields`` is a dictionary by name. Further values are attributes."""

    #: Index in the dataset. It hides the method of tuples with this name, which samples do not need.
    index: int  # type: ignore[assignment]
    #: Values of the requested fields and columns; None for one that the sample lacks.
    fields: Mapping[str, Any]
    #: The requested masks by field name, uint8 [h, w], transformed like the image; None for a mask that the sample
    #: lacks.
    masks: Mapping[str, Any]
    #: The key, or the reader that can read it. Training does not need keys, and reading a key takes longer than reading
    #: an image.
    _key: Union[str, SampleReader]

    @property
    def key(self) -> str:
        if not isinstance(self._key, str):
            self._key = self._key.keys([self.index])[0]
        return self._key

    def __getstate__(self) -> Dict[str, Any]:
        """Another process gets the key instead of the reader."""
        return {**self.__dict__, **({"_key": self.key} if "_key" in self.__dict__ else {})}

    @property
    def image(self) -> Image:
        """None if the sample has no image."""
        image: Any = None if self[0] is self.fields else self[0]
        return cast("Image", image)

    @property
    def label(self) -> Any:
        """Class number; -1 if the sample has no class."""
        return self[1]


class Dataset(KnownAttributes, Generic[Image]):
    """The samples of ``location`` by index: ``len(dataset)``, ``dataset[7]``, ``dataset[-1]``, ``dataset["cat/1"]``.

    A sample is ``(image, label)`` with the attributes ``key``, ``index``, ``fields`` and ``masks``. A slice or a list
    of indices returns a dataset, which shares the reader. A dataset is a map-style dataset for torch's DataLoader, with
    any number of workers and any way of starting them. Each process that uses it has its own reader, which starts with
    the first request and ends with the process. For training, :class:`shardtool.Loader` is many times as fast.

    ``transform`` is a preset or a list of steps, which the reader applies, or ``"raw"`` for stored images. It may also
    be a function, which gets the image at its original size, in the type that ``output`` sets. ``target_transform`` is
    a function of the class number. Both may be set later. ``output="torch"`` returns uint8 [3, h, w], or float32 if the
    transform makes floats, ``"numpy"`` [h, w, 3], ``"pil"`` images of Pillow. All are copies.

    ``fields`` and columns are returned as ``sample.fields``, and ``masks`` (fields that are masks of the image) as
    ``sample.masks``. With either of them, a sample is ``(image, label, more)``, where ``more`` has both by name, so a
    DataLoader collates them: ``for images, labels, more in loader``. :meth:`raw` returns everything that is stored.

    Random transforms draw differently each time that a sample is requested. The random numbers come from torch's
    generator if the program has imported torch. So after ``torch.manual_seed`` a run draws the same again, also in the
    workers of a DataLoader. Another ``seed`` changes the numbers. After :meth:`set_epoch`, samples equal those of a
    loader.

    ``overlay``, ``split``, ``version``, ``layout``, ``features``, ``exclude_keys``, ``max_sample_bytes`` and
    ``storage`` mean the same as for a :class:`shardtool.Loader`.
    """

    _MADE_WITH = ("output", *(name for name in DatasetArguments.__annotations__ if name != "target_transform"))
    _INSTEAD = MappingProxyType(
        {
            "epoch": "call set_epoch",
            "targets": "labels has the class numbers of all samples",
            "samples": "dataset[i] is a sample, and labels has the class numbers of all",
            "imgs": "dataset[i] is a sample, and labels has the class numbers of all",
            "root": "the location is the first argument",
            "loader": "output= sets the type of images",
            "transforms": "use transform and target_transform",
        }
    )

    if not TYPE_CHECKING:
        # ``Dataset[torch.Tensor]`` in an annotation.
        __class_getitem__ = classmethod(GenericAlias)

    @overload
    def __init__(
        self,
        location: Location,
        *,
        transform: Callable[[Any], Image],
        output: Literal["torch", "numpy", "pil"] = ...,
        **options: Unpack[DatasetArguments],
    ) -> None: ...

    @overload
    def __init__(
        self: Dataset[bytes],
        location: Location,
        *,
        transform: Literal["raw"],
        output: Literal["torch", "numpy", "pil"] = ...,
        **options: Unpack[DatasetArguments],
    ) -> None: ...

    @overload
    def __init__(
        self: Dataset[torch.Tensor],
        location: Location,
        *,
        transform: Optional[Transform] = ...,
        output: Literal["torch"] = ...,
        **options: Unpack[DatasetArguments],
    ) -> None: ...

    @overload
    def __init__(
        self: Dataset[NDArray[Any]],
        location: Location,
        *,
        transform: Optional[Transform] = ...,
        output: Literal["numpy"],
        **options: Unpack[DatasetArguments],
    ) -> None: ...

    @overload
    def __init__(
        self: Dataset[PillowImage],
        location: Location,
        *,
        transform: Optional[Transform] = ...,
        output: Literal["pil"],
        **options: Unpack[DatasetArguments],
    ) -> None: ...

    def __init__(
        self,
        location: Location,
        *,
        transform: Optional[Union[Transform, Callable[[Any], Any]]] = None,
        target_transform: Optional[Callable[[int], Any]] = None,
        output: Literal["torch", "numpy", "pil"] = "torch",
        fields: Sequence[str] = (),
        masks: Sequence[str] = (),
        image: Optional[Union[str, Literal[False]]] = None,
        seed: int = 0,
        decode: Optional[Literal["exact", "scaled", "fast"]] = None,
        apply_exif_orientation: Optional[bool] = None,
        max_pixels: Optional[int] = None,
        channels: Optional[int] = None,
        pixel_dtype: Optional[Literal["uint8", "uint16", "int16", "float32"]] = None,
        background: Optional[Union[int, Sequence[int]]] = None,
        overlay: Optional[str] = None,
        split: Optional[str] = None,
        layout: Optional[str] = None,
        features: Optional[Mapping[str, str]] = None,
        exclude_keys: Optional[Iterable[str]] = None,
        max_sample_bytes: Optional[Union[int, str]] = None,
        storage: Optional[Mapping[str, Any]] = None,
        version: Optional[str] = None,
        **unknown: Any,
    ) -> None:
        for name in unknown:
            raise unknown_option(
                "A dataset", name, ("transform", "output", *DatasetArguments.__annotations__), FOREIGN_DATASET_NAMES
            )
        self._target_transform = target_transform
        self._output = output
        self._arrays = _arrays(output)
        self._location = absolute(location)
        self._seen = seen_for_reader(overlay, split, layout, features, exclude_keys, max_sample_bytes, storage, version)
        self._given = {
            "seed": seed,
            # Without images, the reader returns all fields if none are named.
            "fields": fields or None,
            "masks": masks,
            "image": image,
            "decode": decode,
            "apply_exif_orientation": apply_exif_orientation,
            "max_pixels": max_pixels,
            "channels": channels,
            "pixel_dtype": pixel_dtype,
            "background": background,
        }
        #: Larger images are decoded or refused by the reader.
        self._most_pixels = min(max_pixels or _MAX_PIXELS, _MAX_PIXELS)
        twice = [name for name in masks if name in fields]
        if twice:
            raise OptionError(f"{twice[0]!r} is in fields and in masks: remove it from one of them.")
        self._masks = tuple(masks)
        self._has_more = len(fields) + len(masks) > 0
        self._draws = Draws()
        self._set_transform(transform)
        #: The indices of the samples of a part.
        self._indices: Optional[Union[range, NDArray[np.int64]]] = None

    def _set_transform(self, transform: Optional[Union[Transform, Callable[[Any], Any]]]) -> None:
        is_function = callable(transform)
        options = sample_options_for_reader({"transform": None if is_function else transform, **self._given})
        self._transform = transform
        #: Whether the reader may draw random numbers for a sample.
        self._draws_numbers = not is_function and transform not in (None, "raw")
        self._reader = SampleReader(self._location, options, self._seen)

    @property
    def transform(self) -> Optional[Union[Transform, Callable[[Any], Any]]]:
        """It may be set, as frameworks do, and applies to samples that are requested after that. Parts of the dataset
        keep their own."""
        return self._transform

    @transform.setter
    def transform(self, transform: Optional[Union[Transform, Callable[[Any], Any]]]) -> None:
        self._set_transform(transform)

    @property
    def target_transform(self) -> Optional[Callable[[int], Any]]:
        """It may be set, too."""
        return self._target_transform

    @target_transform.setter
    def target_transform(self, target_transform: Optional[Callable[[int], Any]]) -> None:
        self._target_transform = target_transform

    def __getattr__(self, name: str) -> Any:
        # Only called for attributes that do not exist.
        hint = f": {self._INSTEAD[name]}" if name in self._INSTEAD else ""
        raise AttributeError(f"A shardtool.{type(self).__name__} has no attribute {name!r}{hint}.")

    def __len__(self) -> int:
        return len(self._all()) if self._indices is None else len(self._indices)

    @overload
    def __getitem__(self, which: Union[int, str]) -> Sample[Image]: ...

    @overload
    def __getitem__(self, which: Union[slice, Sequence[int], NDArray[Any]]) -> Dataset[Image]: ...

    def __getitem__(self, which: Any) -> Union[Sample[Image], Dataset[Image]]:
        """A sample by its index or key; a part of the dataset by a slice or a list of indices.

        Raises IndexError for an index, and KeyError for a key, that the dataset does not have; :class:`BadSampleError`
        for a sample that cannot be decoded, and :class:`ShardtoolError` for one whose bytes have changed.
        """
        if isinstance(which, str):
            return self._samples([self._index_of(which)])[0]
        if isinstance(which, slice) or not hasattr(which, "__index__") or getattr(which, "ndim", 0) > 0:
            return self._part(which)
        return self._samples([self._index_at(which.__index__())])[0]

    def __getitems__(self, places: Sequence[int]) -> List[Sample[Image]]:
        """Several samples at once, as DataLoader requests them."""
        return self._samples([self._index_at(place) for place in places], with_keys=False)

    def __contains__(self, key: object) -> bool:
        """Whether there is a sample with this key. Raises TypeError if the key is not a str."""
        if not isinstance(key, str):
            raise TypeError(f"A key must be a str, not {key!r}.")
        try:
            self._index_of(key)
        except KeyError:
            return False
        return True

    def __iter__(self) -> Iterator[Sample[Image]]:
        for start in range(0, len(self), _AT_ONCE):
            yield from self._samples([self._index_at(at) for at in range(start, min(len(self), start + _AT_ONCE))])

    def raw(self, which: Union[int, str]) -> Dict[str, Any]:
        """Everything that is stored of a sample, by name: images as bytes, JSON as its value, npy as an array."""
        index = self._index_of(which) if isinstance(which, str) else self._index_at(which.__index__())
        batch = self._ask([index], whole=True)
        return {name: values[0] for name, values in batch.fields.items() if values[0] is not None}

    @property
    def classes(self) -> List[str]:
        """Names of the classes, in the order of their numbers."""
        return list(self._reader.about()["classes"])

    @property
    def class_to_idx(self) -> Dict[str, int]:
        return {name: number for number, name in enumerate(self.classes)}

    @property
    def fields(self) -> List[str]:
        """Names of all fields that its samples have."""
        return list(self._reader.about()["fields"])

    @property
    def labels(self) -> NDArray[np.int64]:
        """Class numbers of all samples, [n], for samplers. No sample is read."""
        labels = self._reader.labels()
        return labels if self._indices is None else labels[self._indices]

    def set_epoch(self, epoch: int) -> None:
        """From now on, the transform draws the same random numbers in this process as in a loader with the same seed,
        in this epoch.

        If a sample occurs again in the epoch, it draws other numbers, as in a loader. Without this call, epochs differ
        anyway. The workers of a DataLoader ignore it.
        """
        if not isinstance(epoch, int) or not 0 <= epoch < 2**32:
            raise OptionError(f"Invalid epoch {epoch!r}: it must be a whole number of 0 or more.")
        self._draws.set_epoch(epoch)

    def close(self) -> None:
        """Ends the reader of this process. The dataset may be used again."""
        self._reader.close()

    def __enter__(self) -> Dataset[Image]:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __getstate__(self) -> Dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_arrays"}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._arrays = _arrays(self._output)

    def __repr__(self) -> str:
        part = "" if self._indices is None else f", {len(self._indices)} of its samples"
        return f"shardtool.Dataset({self._location!r}{part})"

    def _repr_html_(self) -> str:
        """A grid of the first images, for notebooks. Keys and classes are escaped as text."""
        cells = []
        classes = self.classes
        for place in range(min(_SHOWN_IMAGES, len(self))):
            batch = self._ask([self._index_at(place)], whole=True)
            label = int(batch.labels[0])
            name = classes[label] if 0 <= label < len(classes) else ""
            text = html.escape(f"{batch[2][0]} {name}".strip())
            cells.append(
                f'<figure style="margin:0;width:128px"><div style="height:128px">{_picture(batch)}</div>'
                f'<figcaption style="font-size:11px;overflow:hidden">{text}</figcaption></figure>'
            )
        head = html.escape(f"{len(self)} samples, {len(classes)} classes in {self._location}")
        return f'<p>{head}</p><div style="display:flex;flex-wrap:wrap;gap:8px">{"".join(cells)}</div>'

    def _all(self) -> range:
        return range(int(self._reader.about()["samples"]))

    def _part(self, which: Any) -> Dataset[Image]:
        indices = self._all() if self._indices is None else self._indices
        part: Dataset[Image] = object.__new__(Dataset)
        part.__dict__.update(self.__dict__)
        if isinstance(which, slice):
            part._indices = indices[which]
        else:
            places = np.asarray(which)
            if places.size > 0 and not (places.ndim == 1 and places.dtype.kind in "iu"):
                raise TypeError("A dataset can be indexed with an index, a key, a slice or a list of indices.")
            part._indices = np.asarray([self._index_at(int(place)) for place in places], np.int64)
        return part

    def _index_at(self, place: int) -> int:
        indices = self._all() if self._indices is None else self._indices
        if not -len(indices) <= place < len(indices):
            raise IndexError(f"There is no sample {place}: the dataset has {len(indices)} samples.")
        return int(indices[place])

    def _index_of(self, key: str) -> int:
        index = self._reader.index_of(key)
        if self._indices is not None and index not in self._indices:
            raise KeyError(f"{key!r} is not among the {len(self._indices)} selected samples of the dataset")
        return index

    def _ask(self, indices: List[int], whole: bool = False) -> Batch:
        draws = [(0, 0)] * len(indices)
        if self._draws_numbers and not whole:
            draws = self._draws.take(indices, len(self._all()))
        return self._reader.samples(indices, draws, self._arrays, whole=whole)

    def _samples(self, indices: List[int], with_keys: bool = True) -> List[Sample[Image]]:
        if not self._has_more and (self._decodes_here or self._transform == "raw"):
            places = self._reader.image_places(indices, with_keys=with_keys)
            if places is not None:
                return [self._stored_sample(index, places, row) for row, index in enumerate(indices)]
        if self._decodes_here:
            batch = self._reader.samples(indices, [(0, 0)] * len(indices), self._arrays, encoded=True)
            if batch.images is not None:
                batch[0][:] = [self._decoded(index, data) for index, data in zip(indices, batch[0])]
        else:
            batch = self._ask(indices)
            if self._output == "pil" and self._transform != "raw" and batch.images is not None:
                batch[0][:] = map(_pillow, batch[0])
        return [self._sample(batch, row) for row in range(len(indices))]

    def _stored_sample(self, index: int, places: ImagePlaces, row: int) -> Sample[Image]:
        """A sample whose image this process reads from the shard."""
        data = self._reader.stored_image(places, row)
        if data is None:
            # Raises an error with the reason; or the file was just replaced by a good one.
            data = self._reader.samples([index], [(0, 0)], self._arrays, encoded=True)[0][0]
        image = data if self._transform == "raw" else self._decoded(index, data)
        key = self._reader if places.keys is None else places.keys[row]
        return self._sample_of(image, int(places.labels[row]), {}, (index, key))

    @property
    def _decodes_here(self) -> bool:
        """Whether Pillow decodes JPEGs in this process, so that pixels need not pass through a pipe. Both decoders give
        the same pixels."""
        reads_pixels = self._transform is None or callable(self._transform)
        moved = self._given["apply_exif_orientation"] or len(self._masks) > 0
        return self._output == "pil" and reads_pixels and not moved

    def _decoded(self, index: int, data: bytes) -> Any:
        """The image of a sample. The reader decodes images that Pillow may decode differently, or not at all."""
        image = _jpeg(data, self._most_pixels)
        return _pillow(self._ask([index])[0][0]) if image is None else image

    def _sample(self, batch: Batch, row: int) -> Sample[Image]:
        more = {name: None for name in self._masks}
        more.update((name, values[row]) for name, values in batch.fields.items())
        place = int(batch.indices[row]), batch[2][row]
        label = int(batch.labels[row])
        if batch.images is None:
            return self._fields_of(label, more, place)
        return self._sample_of(batch[0][row], label, more, place)

    def _fields_of(self, label: int, fields: Dict[str, Any], place: Tuple[int, str]) -> Sample[Image]:
        """A sample without an image. ``place``: the index and the key."""
        target = label if self._target_transform is None else self._target_transform(label)
        sample: Sample[Image] = Sample((self._transform(fields) if callable(self._transform) else fields, target))
        sample.index, sample._key = place
        sample.masks, sample.fields = {}, fields
        return sample

    def _sample_of(
        self, image: Any, label: int, more: Dict[str, Any], place: Tuple[int, Union[str, SampleReader]]
    ) -> Sample[Image]:
        """``place``: the index and the key."""
        if callable(self._transform):
            image = self._transform(image)
        target = label if self._target_transform is None else self._target_transform(label)
        sample: Sample[Image] = Sample((image, target, more) if self._has_more else (image, target))
        sample.index, sample._key = place
        sample.masks = {name: more[name] for name in self._masks}
        sample.fields = {name: value for name, value in more.items() if name not in self._masks}
        return sample


def _arrays(output: str) -> Arrays:
    if output == "pil":
        try:
            _pillow_module()
        except ImportError as error:
            raise ImportError('output="pil" needs Pillow: install it, or use "numpy".') from error
        return arrays("numpy")
    if output not in ("torch", "numpy"):
        raise OptionError(f'output must be "torch", "numpy" or "pil", not {output!r}.')
    return arrays(output)


def _pillow(image: NDArray[Any]) -> Any:
    if image.dtype != np.uint8 or image.shape[-1] != 3:
        raise OptionError('output="pil" is for uint8 images: remove to_float and normalize, or use "numpy".')
    return _pillow_module().fromarray(image)


def _jpeg(data: bytes, max_pixels: int) -> Any:
    """The RGB image of an ordinary JPEG of up to ``max_pixels`` pixels. None for everything else."""
    module = _pillow_module()
    if not data.startswith(b"\xff\xd8"):
        return None
    try:
        image = module.open(io.BytesIO(data))
        if image.format != "JPEG" or image.mode not in ("RGB", "L") or image.width * image.height > max_pixels:
            return None
        image.load()
    except (OSError, SyntaxError, ValueError, module.DecompressionBombError):
        # The reader decodes the image after all, or raises the error.
        return None
    # convert would copy an image that is RGB already.
    return image if image.mode == "RGB" else image.convert("RGB")


def _pillow_module() -> Any:
    # Old versions of Pillow have no types, and programs are checked with any version.
    return import_module("PIL.Image")


def _picture(batch: Batch) -> str:
    for name, values in batch.fields.items():
        mime = _MIME.get(name.rsplit(".", 1)[-1])
        if mime is not None and values[0] is not None and len(values[0]) <= _SHOWN_BYTES:
            data = base64.b64encode(values[0]).decode()
            return f'<img style="max-width:128px;max-height:128px" src="data:image/{mime};base64,{data}">'
    return ""
