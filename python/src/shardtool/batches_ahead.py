"""Takes batches from the reader before the loop requests them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import TYPE_CHECKING, Any, Deque, Dict, Generic, Optional, TypeVar

from .batch import Batch

if TYPE_CHECKING:
    from .bridge.reader_process import ReaderProcess
    from .loader import Loader

#: Number of batches that are in work, in addition to the one that is delivered next.
AHEAD = 2

#: A batch in work.
Taken = TypeVar("Taken")


class BatchesAhead(ABC, Generic[Taken]):
    """The batches of one loop. Up to :data:`AHEAD` of them are in work before the loop requests them."""

    def __init__(self, loader: Loader, reader: ReaderProcess) -> None:
        self._loader = loader
        self._reader = reader
        self._queue: Deque[Taken] = deque()
        self._is_over = False
        self._error: Optional[BaseException] = None

    @property
    def is_over(self) -> bool:
        """Whether the reader has sent its last batch or failed."""
        return self._is_over

    def next(self) -> Optional[Batch]:
        """The next batch; None at the end of the loop. An error is raised after the batches before it."""
        while len(self._queue) <= AHEAD and not self._is_over:
            self._take()
        if self._queue:
            return self._finish(self._queue.popleft())
        if self._error is not None:
            raise self._error
        return None

    def _take(self) -> None:
        try:
            received = self._loader._receive(self._reader)
            if received is None:
                self._is_over = True
                return
            self._queue.append(self._begin(*received))
        except Exception as error:
            self._error, self._is_over = error, True

    @abstractmethod
    def _begin(self, batch: Batch, header: Dict[str, Any]) -> Taken:
        """Begins the work on a batch of the reader."""

    @abstractmethod
    def _finish(self, taken: Taken) -> Batch:
        """Waits for the work, and counts the batch as delivered."""
