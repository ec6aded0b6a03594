"""Memory that this process and the reader share: a file without a name, which disappears with the last process that
uses it."""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
from typing import Any, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

_MFD_CLOEXEC = 1


def create_slot_file() -> int:
    """The descriptor of an empty file without a name, in memory if the system supports that (Linux)."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("shardtool-slots", os.MFD_CLOEXEC)
    # A Python that was built for an old C library lacks this function even if the system has it.
    libc_memfd_create = getattr(ctypes.CDLL(None, use_errno=True), "memfd_create", None)
    if libc_memfd_create is not None:
        descriptor = int(libc_memfd_create(b"shardtool-slots", _MFD_CLOEXEC))
        if descriptor >= 0:
            return descriptor
    return create_unlinked_file()


def create_unlinked_file() -> int:
    """Like :func:`create_slot_file`, on any system: a temporary file that is unlinked before it is used."""
    with tempfile.TemporaryFile(prefix="shardtool-slots-") as file:
        descriptor = os.dup(file.fileno())
    os.set_inheritable(descriptor, False)
    return descriptor


class SlotMemory:
    """The slot file in this process. Arrays over it keep it mapped."""

    def __init__(self, descriptor: int) -> None:
        self._memory = mmap.mmap(descriptor, os.fstat(descriptor).st_size)
        self._owner_type = ctypes.c_char * len(self._memory)

    def __len__(self) -> int:
        return len(self._memory)

    @property
    def address(self) -> int:
        """Address of the first byte."""
        return int(np.frombuffer(self._memory, np.uint8).ctypes.data)

    def owner(self) -> Any:
        """A new object for this memory. Arrays that have it as their base keep it alive."""
        return self._owner_type.from_buffer(self._memory)

    def array(self, offset: int, dtype: str, shape: Tuple[int, ...], owner: Optional[Any] = None) -> NDArray[Any]:
        """The array at ``offset`` bytes, without a copy. It keeps ``owner`` alive."""
        return np.ndarray(shape, dtype=dtype, buffer=self._memory if owner is None else owner, offset=offset)
