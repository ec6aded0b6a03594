"""Determines the random numbers of a single sample's transform."""

from __future__ import annotations

import sys
from typing import Any, List, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

#: The random numbers of a sample depend on the seed, its number, an epoch of 32 bits and an occurrence of 20 bits.
_OCCURRENCE_BITS = 20
_DRAW_BITS = 32 + _OCCURRENCE_BITS

#: Epoch and occurrence of a sample.
Draw = Tuple[int, int]


class Draws:
    """Different random numbers each time that a sample is requested.

    They come from torch's generator, like those of torchvision's transforms. So a program that seeds torch draws the
    same numbers again, and each worker of a DataLoader has its own numbers, which torch changes with each epoch.
    Without torch, and in the process in which :meth:`set_epoch` was called, they are those of a loader: they depend on
    the epoch, and on how often the sample occurred before in it.
    """

    def __init__(self) -> None:
        self._epoch: Optional[int] = None
        #: For each index, the number of times that the sample has occurred in this epoch.
        self._times: Optional[NDArray[np.uint32]] = None

    def __getstate__(self) -> Any:
        return {"_epoch": self._epoch, "_times": None}

    def set_epoch(self, epoch: int) -> None:
        self._epoch, self._times = epoch, None

    def take(self, numbers: List[int], samples: int) -> List[Draw]:
        """Epoch and occurrence for each of these samples. ``samples`` is the number of samples in the dataset."""
        torch = sys.modules.get("torch")
        if torch is not None and (self._epoch is None or torch.utils.data.get_worker_info() is not None):
            drawn: List[int] = torch.randint(0, 1 << _DRAW_BITS, (len(numbers),)).tolist()
            return [(draw >> _OCCURRENCE_BITS, draw & ((1 << _OCCURRENCE_BITS) - 1)) for draw in drawn]
        return [(self._epoch or 0, self._count(number, samples)) for number in numbers]

    def _count(self, number: int, samples: int) -> int:
        if self._times is None:
            self._times = np.zeros(samples, np.uint32)
        times = int(self._times[number])
        self._times[number] += 1
        return times % (1 << _OCCURRENCE_BITS)
