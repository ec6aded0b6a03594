"""One loop over a loader: the iterator of ``for batch in loader``."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Generic, Optional

from .batch import Array, Batch, Images
from .errors import StaleIteratorError

if TYPE_CHECKING:
    from .batches_ahead import BatchesAhead
    from .bridge.reader_process import ReaderProcess
    from .loader import Loader


class LoaderIterator(Generic[Array, Images]):
    """One loop over a loader. Threads may share it: each batch goes to one of them."""

    def __init__(self, loader: Loader[Array, Images], number: int) -> None:
        self._loader = loader
        self._number = number
        self._reader: Optional[ReaderProcess] = None
        self._batches_ahead: Optional[BatchesAhead[Any]] = None
        self._over = False
        self._turn = threading.RLock()

    def __iter__(self) -> LoaderIterator[Array, Images]:
        return self

    def __next__(self) -> Batch[Array, Images]:
        with self._turn:
            if self._over:
                raise StopIteration
            try:
                batch = self._next()
            except BaseException:
                self._over = True
                raise
            if batch is None:
                self._over = True
                raise StopIteration
            return batch

    def _next(self) -> Optional[Batch[Array, Images]]:
        loader = self._loader
        loader._check_process()
        closes = loader._closes
        is_over = self._batches_ahead is not None and self._batches_ahead.is_over
        if loader._loops != self._number or (self._reader is not None and self._reader.is_closed and not is_over):
            raise StaleIteratorError(
                "This loop has ended, because the loader was closed or another loop was started: start a new loop."
            )
        with loader._waits.waiting(self._number) as wait:
            if self._reader is None:
                loader._serve_metrics()
                with wait.start():
                    self._reader = loader._begin(closes)
                    self._batches_ahead = loader._batches_ahead(self._reader)
            batch = self._batches_ahead.next() if self._batches_ahead is not None else loader._next_batch(self._reader)
            if batch is not None:
                wait.delivered(batch.epoch, len(batch.valid))
            return batch
