"""Shared memory for the results of workers, and which of its regions are in use."""

from __future__ import annotations

import os
import weakref
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

import numpy as np
from numpy.typing import NDArray

from ..bridge.slot_file import SlotMemory, create_slot_file
from .function import Part

_ALIGNMENT = 64
_PAGE_BYTES = 4096
#: Numbers that a worker writes when it begins a row: the job, the row and the time.
CELL_NUMBERS = 3


def place_parts(parts: Sequence[Part], rows: int) -> Tuple[List[int], int]:
    """The offset of each part of a batch, and the total number of bytes."""
    offsets, end = [], 0
    for part in parts:
        offsets.append(end)
        size = rows * int(np.prod(part.shape, dtype=np.int64)) * np.dtype(part.dtype).itemsize
        end += -(-size // _ALIGNMENT) * _ALIGNMENT
    return offsets, max(end, _ALIGNMENT)


def cell_offset(worker: int) -> int:
    """Offset of the numbers of a worker, in bytes. The number of the loop comes first. All are float64."""
    return 8 * (1 + CELL_NUMBERS * worker)


class Region(NamedTuple):
    """The memory of one batch."""

    offset: int
    bytes: int


class OutputMemory:
    """An unnamed file that workers map: the number of the loop, the numbers of each worker, and regions for batches."""

    def __init__(self, workers: int) -> None:
        self.descriptor = create_slot_file()
        self._end = -(-cell_offset(workers) // _PAGE_BYTES) * _PAGE_BYTES
        os.ftruncate(self.descriptor, self._end)
        self._memory = SlotMemory(self.descriptor)
        self._free: List[Region] = []
        #: Regions that workers write to, or whose batch is valid only until the next one.
        self._taken: Set[Region] = set()
        #: Regions of batches that the caller still refers to, with the owners of their arrays.
        self._delivered: Dict[Region, Any] = {}
        self.numbers: NDArray[np.float64] = self._memory.array(0, "float64", (self._end // 8,))
        weakref.finalize(self, os.close, self.descriptor)

    @property
    def delivered(self) -> int:
        """Number of batches whose arrays are still referred to."""
        self._collect()
        return len(self._delivered)

    def take(self, size: int) -> Region:
        """Takes a region of at least ``size`` bytes that nothing refers to."""
        region = self._find(size)
        self._taken.add(region)
        return region

    def _find(self, size: int) -> Region:
        self._collect()
        fitting = [region for region in self._free if region.bytes >= size]
        if fitting:
            region = min(fitting, key=lambda one: one.bytes)
            self._free.remove(region)
            return region
        region = Region(self._end, -(-size // _PAGE_BYTES) * _PAGE_BYTES)
        self._end += region.bytes
        os.ftruncate(self.descriptor, self._end)
        self._memory = SlotMemory(self.descriptor)
        return region

    def array(self, offset: int, part: Part, rows: int, owner: Optional[Any] = None) -> NDArray[Any]:
        return self._memory.array(offset, part.dtype, (rows, *part.shape), owner)

    def deliver(self, region: Region) -> Any:
        """The owner for the arrays of a delivered batch. When the owner is collected, the region is free."""
        owner = self._memory.owner()
        self._taken.discard(region)
        self._delivered[region] = weakref.ref(owner)
        return owner

    def give_back(self, region: Region) -> None:
        self._taken.discard(region)
        self._delivered.pop(region, None)
        self._free.append(region)

    def give_back_taken(self) -> None:
        """Frees the regions of a loop that the caller left. No worker may still write to them."""
        for region in list(self._taken):
            self.give_back(region)

    def _collect(self) -> None:
        for region in [region for region, owner in self._delivered.items() if owner() is None]:
            self.give_back(region)
