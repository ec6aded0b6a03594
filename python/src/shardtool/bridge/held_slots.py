"""The reader's slots that are in use in this process."""

from __future__ import annotations

import weakref
from typing import Any, Callable, List, NamedTuple, Tuple

from numpy.typing import NDArray

from ..errors import ReaderError
from .slot_file import SlotMemory

#: Makes an array of a batch, from its offset in the slot file, its dtype and its shape.
MakeArray = Callable[[int, str, Tuple[int, ...]], NDArray[Any]]

#: The reader always keeps this number of slots for the next batches, unless it has fewer than four slots in total.
_FOR_THE_READER = 2


def no_slot(offset: int, dtype: str, shape: Tuple[int, ...]) -> NDArray[Any]:
    raise ReaderError(
        "The reader sent images in shared memory instead of as bytes. This is a bug in shardtool: please report it."
    )


class HeldSlots:
    """Batches whose slots the reader must not fill yet.

    A slot is in use while anything refers to its memory: a numpy array, a tensor, a view of either, a DLPack capsule,
    or a framework that is still copying from it. Each of them keeps the owner of the batch's arrays alive.
    """

    def __init__(self, slots: int, *, reuse: bool) -> None:
        """``slots``: the number of slots that the reader has. ``reuse``: the next request releases every slot, unless a
        copy from it to a device is in progress."""
        self._most = max(slots - _FOR_THE_READER, min(slots - 1, 2))
        self._reuse = reuse
        #: In the order in which they arrived.
        self._held: List[_Held] = []
        #: Numbers of batches that were copied out of their slots.
        self._copied: List[int] = []

    def numbers(self) -> List[int]:
        return [held.number for held in self._held]

    def hold(self, number: int, memory: SlotMemory) -> MakeArray:
        """Called when a batch has arrived. Its arrays are views of its slot, or copies if too many slots are in use. So
        the reader always has a slot for the next batch, however many batches the caller keeps."""
        if not self._reuse and len(self._held) >= self._most:
            self._copied.append(number)
            return lambda offset, dtype, shape: memory.array(offset, dtype, shape).copy()
        owner = memory.owner()
        self._held.append(_Held(number, weakref.ref(owner)))
        return lambda offset, dtype, shape: memory.array(offset, dtype, shape, owner)

    def hold_until(self, copied: Any) -> None:
        """Copies from the slot of the batch that arrived last to a device are in progress until this event."""
        self._held[-1] = self._held[-1]._replace(copied=copied)

    def release(self) -> List[int]:
        """Removes the batches that are no longer in use, and returns their numbers for the next request."""
        released, self._copied = self._copied, []
        in_use: List[_Held] = []
        for held in self._held:
            if self._is_in_use(held):
                in_use.append(held)
            else:
                released.append(held.number)
        while len(in_use) > self._most and in_use[0].copied is not None:
            oldest = in_use.pop(0)
            oldest.copied.synchronize()
            released.append(oldest.number)
        self._held = in_use
        return released

    def clear(self) -> None:
        """Called when the reader has ended. Arrays over its slots stay valid."""
        self._held, self._copied = [], []

    def _is_in_use(self, held: _Held) -> bool:
        if held.copied is not None:
            return not held.copied.query()
        return not self._reuse and held.owner() is not None


class _Held(NamedTuple):
    #: Number of the batch.
    number: int
    #: The owner of the batch's arrays; None once nothing refers to any of them.
    owner: Callable[[], Any]
    #: The event after the copies to a device, if there are any.
    copied: Any = None
