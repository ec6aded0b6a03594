"""Images that this process reads from local shards by itself: their bytes then need no pipe."""

from __future__ import annotations

import os
import threading
import zlib
from collections import OrderedDict
from typing import Any, List, NamedTuple, Optional

import numpy as np
from numpy.typing import NDArray

from .frames import Frame

#: Number of open shards. Processes may usually have 1,024 open files.
_OPEN_FILES = 64


class ImagePlaces(NamedTuple):
    """Where the images of some samples are, with one entry for each sample."""

    paths: List[str]
    #: int32 [n], index in ``paths``.
    file: NDArray[np.int32]
    #: float64 [n], the first byte in the file.
    offset: NDArray[np.float64]
    #: float64 [n], the number of bytes.
    length: NDArray[np.float64]
    #: float64 [n]; -1 where the index has none.
    crc32: NDArray[np.float64]
    #: int32 [n], class numbers; -1 where a sample has none.
    labels: NDArray[np.int32]
    #: The keys, if they were requested.
    keys: Optional[List[str]]


def read_places(frame: Frame, size: int) -> Optional[ImagePlaces]:
    """The answer to a request ``imagePlaces`` for ``size`` samples (packages/reader/src/bridge/requests.ts).

    None: the reader has to read at least one of them.
    """
    paths = frame.header["paths"]
    if paths is None:
        return None
    at = 0

    def column(kind: Any) -> Any:
        nonlocal at
        start, at = at, at + size * np.dtype(kind).itemsize
        return np.frombuffer(frame.rest[start:at], kind)

    file = column(np.int32)
    offset, length, crc32 = (column(np.float64) for _ in range(3))
    return ImagePlaces(paths, file, offset, length, crc32, column(np.int32), frame.header["keys"])


class ShardReads:
    """Reads parts of local files, and keeps the most recently used files open. Threads may share it."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, _File] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, places: ImagePlaces, row: int) -> Optional[bytes]:
        """The bytes of an image. None if they cannot be read or have another checksum: the reader then says why."""
        length, expected = int(places.length[row]), int(places.crc32[row])
        try:
            file = self._file(places.paths[places.file[row]])
            data = os.pread(file.descriptor, length, int(places.offset[row]))
        except OSError:
            return None
        if len(data) < length or (expected >= 0 and zlib.crc32(data) != expected):
            return None
        return data

    def _file(self, path: str) -> _File:
        with self._lock:
            file = self._open.get(path)
            if file is None:
                file = self._open[path] = _File(path)
                if len(self._open) > _OPEN_FILES:
                    self._open.popitem(last=False)
            else:
                self._open.move_to_end(path)
            return file

    def close(self) -> None:
        """Closes the files. The next read opens them again."""
        with self._lock:
            self._open.clear()


class _File:
    """An open file. It is closed when nothing refers to it: another thread may still read it."""

    def __init__(self, path: str) -> None:
        self.descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def __del__(self) -> None:
        if hasattr(self, "descriptor"):
            os.close(self.descriptor)
