"""Writes samples that a program creates to shards."""

from __future__ import annotations

import io
import json
import math
import os
import re
from importlib import import_module
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from .bridge.for_reader import storage_for_reader
from .bridge.foreign_names import FOREIGN_WRITER_NAMES, unknown_option
from .bridge.node import find_program
from .bridge.reader_process import ReaderProcess
from .errors import OptionError, StaleIteratorError
from .location import place
from .options import WRITER_OPTION_NAMES

if TYPE_CHECKING:
    from typing import Literal

    from typing_extensions import Unpack

    from .options import WriterOptions

#: The first bytes of an image, and its field.
_KINDS = (
    (b"\xff\xd8\xff", "jpg"),
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"GIF8", "gif"),
    (b"II*\0", "tif"),
    (b"MM\0*", "tif"),
    (b"BM", "bmp"),
)
_PILLOW_NAMES = {"jpg": "JPEG", "png": "PNG", "webp": "WEBP"}


class Writer:
    """Writes samples to new shards in the folder or bucket ``output``, in the order in which they are added::

        with shardtool.Writer("out", classes=["cat", "dog"]) as writer:
            writer.add("cat/1", image, label="cat", json={"age": 3})

    If the block ends without an error, the samples become a dataset. Otherwise the folder is marked as unfinished.
    ``classes``: class names in the order of their numbers. Without them, classes are only numbers. ``columns``: label
    columns of the index with their types, such as ``{"score": "double"}``. Types are ``"string"``, ``"int"``,
    ``"double"`` and ``"bool"``. Arrays and Pillow images are encoded as ``image_format``: ``"png"``, ``"webp"``
    (lossless) and ``"jpg"`` (with ``quality``) need Pillow; ``"npy"`` (uncompressed) does not. ``storage``: how
    requests to a bucket are made, as in :class:`shardtool.Loader`. ``**options``: :class:`shardtool.WriterOptions`.

    Several processes can write one dataset, each a part of the samples: ``part="2/4"`` is the second of four, and
    ``part="auto"`` takes the part from the environment variables of the job scheduler. All use the same options. The
    part that finishes last makes the dataset. To repeat an interrupted part, run it again.

    Threads may share a writer. After Ctrl-C within :meth:`add` the writer is still usable; the sample that was being
    added may have been written.

    Raises :class:`OptionError`, and :class:`ShardtoolError` if the folder ``output`` contains something that must not
    be replaced. A bucket is checked when the first sample is added.
    """

    def __init__(
        self,
        output: Union[str, os.PathLike[str]],
        *,
        classes: Sequence[str] = (),
        columns: Optional[Mapping[str, str]] = None,
        image_format: Literal["png", "jpg", "webp", "npy"] = "png",
        quality: int = 90,
        storage: Optional[Mapping[str, Any]] = None,
        **options: Unpack[WriterOptions],
    ) -> None:
        if image_format not in ("png", "jpg", "webp", "npy"):
            raise OptionError(f'image_format must be "png", "jpg", "webp" or "npy", not {image_format!r}.')
        given: Dict[str, Any] = {"classes": list(classes), "columns": dict(columns or {})}
        if storage is not None:
            given["storage"] = storage_for_reader(storage)
        for name, value in options.items():
            if name not in WRITER_OPTION_NAMES:
                raise unknown_option("A writer", name, WRITER_OPTION_NAMES, FOREIGN_WRITER_NAMES)
            if value is not None:
                given[WRITER_OPTION_NAMES[name]] = value
        self._image_format, self._quality = image_format, quality
        closed = "This writer was closed while a sample was added: make a new one."
        self._process: Optional[ReaderProcess] = ReaderProcess(find_program("writer"), closed)
        #: The report of :meth:`close`; None until the writer is closed.
        self.report: Optional[Dict[str, Any]] = None
        try:
            self._process.ask("open", output=place(output), options=given)
        except BaseException:
            self._end()
            raise

    def add(
        self,
        key: str,
        image: Any = None,
        *,
        label: Union[int, str, None] = None,
        columns: Optional[Mapping[str, Any]] = None,
        **fields: Any,
    ) -> None:
        """Writes a sample and returns when it is written.

        ``image``: an encoded image as bytes, an array uint8 [h, w, 3], or a Pillow image. ``label``: the class, as a
        number or a name in ``classes``. Further fields by name (``json={...}``, ``txt="..."``,
        ``**{"seg.png": mask_bytes}``): bytes, text, numbers, values that JSON can represent, and arrays or tensors for
        ``npy``.

        Raises :class:`OptionError` or :class:`ShardtoolError` for an invalid sample, and TypeError or ValueError for a
        key that is not text or a value that JSON cannot represent. An invalid sample is not written, and other samples
        are unaffected.
        """
        if not isinstance(key, str):
            raise TypeError(f"The key of a sample must be a str, not {key!r} ({type(key).__name__}).")
        given: List[Tuple[str, Any]] = []
        if image is not None:
            given.append(self._image(key, image))
        if label is not None:
            given.append(("label", label if isinstance(label, str) else int(label)))
        given += fields.items()
        values: List[Tuple[str, Any]] = []
        parts: List[Tuple[str, bytes]] = []
        for name, value in given:
            plain = _plain(name, value)
            if isinstance(plain, bytes):
                parts.append((name, plain))
            else:
                values.append((name, plain))
        process = self._open()
        lengths = [(name, len(part)) for name, part in parts]
        pairs = [(_column(key, name), _column_value(value)) for name, value in (columns or {}).items()]
        content = [part for _, part in parts]
        try:
            process.request("add", content, key=key, values=values, bytes=lengths, columns=pairs)
        except (TypeError, ValueError):
            _check_json(key, [*values, *pairs])
            raise

    def close(self) -> Dict[str, Any]:
        """Makes a dataset of the samples; with ``part``, of all parts if this was the last one.

        Returns the number of ``samples``, ``shards`` and ``bytes`` that this writer wrote, ``isCommitted`` (False if
        other parts are missing) and ``pendingParts``, the missing parts. Raises :class:`ShardtoolError`, for example if
        two parts have the same key.
        """
        process = self._open()
        try:
            self.report = dict(process.ask("close")["report"])
        finally:
            self._end()
        return self.report

    def abandon(self) -> None:
        """Stops without making a dataset, unless the writer is closed. What was written is kept."""
        if self._process is not None and not self._process.is_closed:
            self._process.ask("abandon")
        self._end()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: object, *exception: object) -> None:
        if self._process is None:
            return
        if kind is None:
            self.close()
        else:
            self.abandon()

    def _open(self) -> ReaderProcess:
        if self._process is None or self._process.is_closed:
            raise StaleIteratorError("This writer is closed; create a new one.")
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.close()

    def _image(self, key: str, image: Any) -> Tuple[str, Any]:
        if isinstance(image, (bytes, bytearray, memoryview)):
            return _field_of(key, bytes(image)), bytes(image)
        if self._image_format == "npy":
            return "npy", _npy(np.ascontiguousarray(_rgb(image)))
        try:
            pillow = import_module("PIL.Image")
        except ImportError as error:
            raise ImportError(
                f'image_format="{self._image_format}" needs Pillow: install it, choose "npy", or add encoded bytes.'
            ) from error
        picture = image if isinstance(image, pillow.Image) else pillow.fromarray(_rgb(image))
        how: Dict[str, Any] = {"png": {}, "jpg": {"quality": self._quality}, "webp": {"lossless": True}}
        encoded = io.BytesIO()
        if self._image_format == "jpg" and picture.mode not in ("RGB", "L", "CMYK"):
            picture = picture.convert("RGB")
        picture.save(encoded, _PILLOW_NAMES[self._image_format], **how[self._image_format])
        return self._image_format, encoded.getvalue()


def _field_of(key: str, image: bytes) -> str:
    for beginning, field in _KINDS:
        if image.startswith(beginning):
            return field
    if image[:4] == b"RIFF" and image[8:12] == b"WEBP":
        return "webp"
    if image[4:12] in (b"ftypavif", b"ftypavis"):
        return "avif"
    if re.match(rb"P[1-6]\s+[0-9#]", image):
        return "ppm"
    if image.startswith(b"\x93NUMPY"):
        return "npy"
    raise OptionError(
        f"The image of sample {key!r} is not a jpg, png, webp, gif, tif, avif, bmp, ppm or npy file: pass the bytes of "
        "such a file. Pass other files as fields."
    )


def _rgb(image: Any) -> Any:
    if isinstance(image, (str, os.PathLike)):
        raise OptionError(
            f"An image must be bytes, an array or a Pillow image, not a path: pass "
            f"Path({os.fspath(image)!r}).read_bytes()."
        )
    pixels = np.asarray(image)
    if pixels.dtype == np.uint8 and (pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] == 3)):
        return pixels if pixels.ndim == 3 else np.repeat(pixels[:, :, None], 3, axis=2)
    raise OptionError(f"An image must be a uint8 array [h, w, 3] or [h, w], not {pixels.dtype} {list(pixels.shape)}.")


def _plain(name: str, value: Any) -> Any:
    """The value as bytes, or as a value that JSON can represent."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if hasattr(value, "__array__") and name.rsplit(".", 1)[-1] == "npy":
        return _npy(np.asarray(value))
    return _number(value)


def _number(value: Any) -> Any:
    """Converts numbers of numpy to Python's numbers."""
    return value.item() if isinstance(value, np.generic) else value


def _column_value(value: Any) -> Any:
    """NaN is a missing value, as in a table of labels."""
    plain = _number(value)
    return None if isinstance(plain, float) and math.isnan(plain) else plain


def _column(key: str, name: Any) -> str:
    if isinstance(name, str):
        return name
    raise TypeError(f'The sample "{key}" has a column called {name!r} ({type(name).__name__}); the name must be a str.')


def _check_json(key: str, values: Sequence[Tuple[str, Any]]) -> None:
    """Raises TypeError or ValueError, as JSON does, for a value that it cannot hold."""
    for name, value in values:
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(
                f'The sample "{key}" has a value of "{name}" that cannot be written as JSON ({error}).'
            ) from error


def _npy(array: Any) -> bytes:
    written = io.BytesIO()
    np.save(written, array, allow_pickle=False)
    return written.getvalue()
