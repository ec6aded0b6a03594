"""The reader of a map-style dataset: one in each process, started with the first request."""

from __future__ import annotations

import os
import threading
from typing import Any, Dict, List, Optional

import numpy as np
from numpy.typing import NDArray

from ..batch import Arrays, Batch, read_batch
from ..draws import Draw
from .held_slots import no_slot
from .reader_process import ReaderProcess
from .stored_images import ImagePlaces, ShardReads, read_places


class SampleReader:
    """A reader in each process that requests samples. Pickling it sends only the arguments for starting a reader."""

    def __init__(self, location: Any, options: Dict[str, Any], seen: Dict[str, Any]) -> None:
        self._how = (location, options, seen)
        self._forget()

    def _forget(self) -> None:
        self._owner = os.getpid()
        self._lock = threading.RLock()
        self._process: Optional[ReaderProcess] = None
        self._about: Dict[str, Any] = {}
        self._reads = ShardReads()

    def __getstate__(self) -> Any:
        return self._how

    def __setstate__(self, how: Any) -> None:
        self._how = how
        self._forget()

    def about(self) -> Dict[str, Any]:
        if self._owner != os.getpid() or not self._about:
            self._started()
        return self._about

    def samples(
        self, numbers: List[int], draws: List[Draw], to: Arrays, *, whole: bool = False, encoded: bool = False
    ) -> Batch:
        """``whole``: all fields as values, without images. ``encoded``: images as they are stored."""
        content = {"wanted": numbers, "draws": draws, "whole": whole, "encoded": encoded}
        frame = self._started().request("samples", **content)
        return read_batch(frame, no_slot, to)

    def image_places(self, numbers: List[int], *, with_keys: bool) -> Optional[ImagePlaces]:
        """Where the stored images are. None: request them by :meth:`samples` with ``encoded``."""
        frame = self._started().request("imagePlaces", wanted=numbers, withKeys=with_keys)
        return read_places(frame, len(numbers))

    def stored_image(self, places: ImagePlaces, row: int) -> Optional[bytes]:
        """The bytes of an image. None: the reader says what is wrong with it when the sample is requested."""
        return self._reads.read(places, row)

    def keys(self, numbers: List[int]) -> List[str]:
        keys: List[str] = self._started().ask("keys", wanted=numbers)["keys"]
        return keys

    def index_of(self, key: str) -> int:
        """The index of a sample. Raises KeyError, with the most similar key, if there is none with this key."""
        answer = self._started().ask("indexOf", key=key)
        if answer["index"] < 0:
            raise KeyError(f"{key!r} is not a key of the dataset{answer['hint'].rstrip('.')}")
        return int(answer["index"])

    def labels(self) -> NDArray[np.int64]:
        return np.frombuffer(self._started().request("labels").rest, np.int32).astype(np.int64)

    def close(self) -> None:
        if self._owner == os.getpid() and self._process is not None:
            self._process.close()
        self._reads.close()
        self._forget()

    def _started(self) -> ReaderProcess:
        if self._owner != os.getpid():
            # After a fork, the reader belongs to the parent process, and so does the lock, which another thread may
            # have held.
            self._forget()
        with self._lock:
            if self._process is None or self._process.is_closed:
                location, options, seen = self._how
                process = ReaderProcess(closed="The dataset was closed while something was asked of it.")
                try:
                    self._about = process.ask("openSamples", location=location, options=options, seen=seen)
                except BaseException:
                    process.close()
                    raise
                self._process = process
            return self._process
