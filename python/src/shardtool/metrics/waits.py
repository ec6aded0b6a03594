"""How long loops wait for batches, and why: over an epoch, over the last minute, and in all.

Waits of the loop are measured in Python. With each batch, the reader reports its own waits.
"""

from __future__ import annotations

import itertools
import time
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

#: Why a loop waits. Those of the reader are in packages/reader/src/loader/deliver/waits.ts.
CAUSES = ("start", "storage", "order", "decode", "transform", "python_transform", "delivery")
_READER_CAUSES = ("start", "storage", "order", "decode", "transform", "delivery")
#: Totals of the reader that are shown unchanged.
_COUNTS = ("bad", "dropped", "requests", "fetchedBytes", "retries", "cacheHits", "cacheHitBytes")
_WINDOW_SECONDS = 60


class _Period:
    """Sums over a period, in seconds."""

    def __init__(self) -> None:
        self.batches = 0
        self.samples = 0
        self.consumer = 0.0
        self.waits = dict.fromkeys(CAUSES, 0.0)

    def add(self, batches: int, samples: int, consumer: float, waits: Mapping[str, float]) -> None:
        self.batches += batches
        self.samples += samples
        self.consumer += consumer
        for cause, seconds in waits.items():
            self.waits[cause] += seconds

    @property
    def waited(self) -> float:
        return sum(self.waits.values())

    def report(self) -> Dict[str, Any]:
        waited = self.waited
        everything = waited + self.consumer
        cause = max(self.waits, key=lambda name: self.waits[name])
        return {
            "batches": self.batches,
            "samples": self.samples,
            "wait_ms": waited * 1000,
            "wait_ms_by": {name: seconds * 1000 for name, seconds in self.waits.items()},
            "consumer_ms": self.consumer * 1000,
            "wait_share": waited / everything if everything > 0 else 0.0,
            "cause": cause if self.waits[cause] > 0 else None,
        }


class _Wait:
    """The wait for one batch."""

    def __init__(self, waits: Waits, asked: float) -> None:
        self._waits = waits
        self.asked = asked
        self._start = 0.0
        self._reader = dict(waits.reader)
        self._python = waits.python()[0]

    @contextmanager
    def start(self) -> Iterator[None]:
        """The time within this block counts as the start of the loop."""
        begun = self._waits.now()
        yield
        self._start += self._waits.now() - begun

    def delivered(self, epoch: int, rows: int) -> None:
        now = self._waits.now()
        python = self._waits.python()[0] - self._python
        reader = {cause: self._waits.reader[cause] - self._reader[cause] for cause in _READER_CAUSES}
        self._waits.add(epoch, rows, now, split(now - self.asked, self._start, python, reader))


def split(waited: float, start: float, python: float, reader: Mapping[str, float]) -> Dict[str, float]:
    """Splits a wait by its causes, which add up to it. The unexplained rest is ``delivery``."""
    waits = dict.fromkeys(CAUSES, 0.0)
    waits["start"] = min(start, waited)
    waits["python_transform"] = min(python, waited - waits["start"])
    left = waited - waits["start"] - waits["python_transform"]
    of_reader = sum(reader.values())
    scale = min(1.0, left / of_reader) if of_reader > 0 else 0.0
    for cause, seconds in reader.items():
        waits[cause] += seconds * scale
    waits["delivery"] += left - of_reader * scale
    return waits


#: Numbers the loaders of a process.
_NUMBERS = itertools.count()


class Waits:
    """The waits of a loader. Their memory does not depend on the number of batches."""

    #: Returns seconds on a clock that never goes back. Tests use another function.
    now: Callable[[], float] = staticmethod(time.perf_counter)

    def __init__(self, python: Optional[Callable[[], Tuple[float, int]]] = None) -> None:
        """``python``: how many seconds all loops waited for python_transform, and for how many samples it failed."""
        self.python: Callable[[], Tuple[float, int]] = python or (lambda: (0.0, 0))
        #: Waits of all readers of this loader, in seconds, and their counts.
        self.reader = dict.fromkeys(_READER_CAUSES, 0.0)
        self.counts = dict.fromkeys(_COUNTS, 0)
        self.rank = 0
        #: When counting began, in seconds since 1970.
        self.since = time.time()
        self.number = next(_NUMBERS)
        self._seen: Mapping[str, Any] = {}
        self._ready = 0
        self.all = _Period()
        self._epochs: List[Tuple[int, _Period]] = []
        self._seconds: Dict[int, Tuple[int, _Period]] = {}
        self._loop: Optional[int] = None
        self._returned = 0.0
        self._consumer = 0.0
        self._asked: Optional[float] = None

    def reader_opens(self) -> None:
        """Called when a reader opens the dataset: its counts start at 0."""
        self._seen = {}

    def take(self, totals: Mapping[str, Any]) -> None:
        """Takes the counts of the reader since it opened the dataset."""
        seen = self._seen
        before = seen.get("waitMsBy", {})
        for cause, ms in totals["waitMsBy"].items():
            self.reader[cause] += (ms - before.get(cause, 0)) / 1000
        for name in _COUNTS:
            self.counts[name] += totals[name] - seen.get(name, 0)
        self._ready = totals["readyBatches"]
        self._seen = totals

    @contextmanager
    def waiting(self, loop: int) -> Iterator[_Wait]:
        """Measures the wait of a loop for a batch."""
        asked = self.now()
        self._consumer = asked - self._returned if self._loop == loop else 0.0
        self._asked = asked
        try:
            yield _Wait(self, asked)
        finally:
            self._asked = None
            self._loop, self._returned = loop, self.now()

    def add(self, epoch: int, rows: int, now: float, waits: Mapping[str, float]) -> None:
        """Called when a batch was delivered."""
        second = int(now)
        place = second % _WINDOW_SECONDS
        if self._seconds.get(place, (-1, None))[0] != second:
            self._seconds[place] = (second, _Period())
        if not self._epochs or self._epochs[-1][0] != epoch:
            self._epochs = [*self._epochs[-1:], (epoch, _Period())]
        for period in (self.all, self._epochs[-1][1], self._seconds[place][1]):
            period.add(1, rows, self._consumer, waits)

    def report(self) -> Dict[str, Any]:
        """Reports the waits of the epoch of the last batch, of the epoch before it, and of the last minute."""
        epochs = [{"epoch": epoch, **period.report()} for epoch, period in self._epochs]
        return {
            "epoch": epochs[-1] if epochs else None,
            "previous_epoch": epochs[-2] if len(epochs) > 1 else None,
            "window": self._window().report(),
        }

    def totals(self) -> Dict[str, Any]:
        """The values for Prometheus. Times are in seconds."""
        asked = self._asked
        return {
            "wait_seconds": dict(self.all.waits),
            "consumer_seconds": self.all.consumer,
            "waiting_seconds": 0.0 if asked is None else self.now() - asked,
            "batches": self.all.batches,
            "samples": self.all.samples,
            "bad_samples": self.counts["bad"] + self.python()[1],
            "dropped_samples": self.counts["dropped"],
            "epoch": self._epochs[-1][0] if self._epochs else -1,
            "ready_batches": self._ready,
            "storage_requests": self.counts["requests"],
            "storage_fetched_bytes": self.counts["fetchedBytes"],
            "storage_retries": self.counts["retries"],
            "cache_hits": self.counts["cacheHits"],
            "cache_hit_bytes": self.counts["cacheHitBytes"],
        }

    def flat(self, prefix: str) -> Dict[str, float]:
        """The values for W&B and TensorBoard."""
        totals = self.totals()
        totals.pop("waiting_seconds")
        window = self._window()
        everything = window.waited + window.consumer
        metrics: Dict[str, float] = {**totals, "wait_seconds": self.all.waited}
        metrics["samples_per_second"] = window.samples / everything if everything > 0 else 0.0
        metrics["wait_share"] = window.waited / everything if everything > 0 else 0.0
        for cause, seconds in window.waits.items():
            metrics[f"wait_share_{cause}"] = seconds / everything if everything > 0 else 0.0
        return {prefix + name: value for name, value in metrics.items()}

    def _window(self) -> _Period:
        last = int(self.now())
        window = _Period()
        for second, period in list(self._seconds.values()):
            if last - _WINDOW_SECONDS < second <= last:
                window.add(period.batches, period.samples, period.consumer, period.waits)
        return window


def snake(name: str) -> str:
    """Python's way of writing a name of the reader."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
