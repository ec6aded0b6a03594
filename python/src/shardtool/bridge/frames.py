"""The messages on the pipes between this process and the reader (packages/reader/src/bridge/frames.ts).

A frame consists of its length without these four bytes (uint32, little endian), the length of its header (uint32), the
header (JSON in UTF-8), and bytes that the header announces.

An exception from a signal handler (KeyboardInterrupt) may end any wait for a pipe. The next frame must still be read or
written from its first byte. So ``list.extend`` makes the calls that read and write: the interpreter runs no handler
between such a call and storing its result.
"""

from __future__ import annotations

import json
import os
import struct
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

_LENGTH = struct.Struct("<I")
_LENGTHS = struct.Struct("<II")


def encode_frame(header: Dict[str, Any], parts: Sequence[bytes] = ()) -> bytes:
    """Raises TypeError if JSON cannot represent the header."""
    text = json.dumps(header, allow_nan=False).encode()
    length = _LENGTH.size + len(text) + sum(map(len, parts))
    return b"".join((_LENGTHS.pack(length, len(text)), text, *parts))


class Frame(NamedTuple):
    header: Dict[str, Any]
    #: The bytes after the header.
    rest: memoryview


class FrameDecoder:
    """Assembles frames from pieces of any length."""

    def __init__(self) -> None:
        self._pieces: List[bytes] = []

    def read(self, descriptor: int, most: int) -> bool:
        """Reads a piece of at most ``most`` bytes. False at the end of the pipe."""
        self._pieces.extend(map(os.read, (descriptor,), (most,)))
        return self._pieces[-1] != b""

    def take(self) -> Optional[Frame]:
        """The oldest frame, or None while it is incomplete."""
        length = self._length()
        if length is None or self._bytes() < length:
            return None
        joined = b"".join(self._pieces)
        frame, rest = memoryview(joined)[:length], joined[length:]
        self._pieces = [rest] if rest else []
        header_end = _LENGTHS.size + _LENGTH.unpack_from(frame, _LENGTH.size)[0]
        return Frame(json.loads(bytes(frame[_LENGTHS.size : header_end])), frame[header_end:])

    def _length(self) -> Optional[int]:
        """Length of the oldest frame in bytes, including the length itself."""
        if self._bytes() < _LENGTHS.size:
            return None
        if len(self._pieces[0]) < _LENGTH.size:
            self._pieces = [b"".join(self._pieces)]
        return _LENGTH.size + int(_LENGTH.unpack_from(self._pieces[0])[0])

    def _bytes(self) -> int:
        return sum(map(len, self._pieces))


class OutgoingFrame:
    """A frame that is being written to a pipe."""

    def __init__(self, frame: bytes) -> None:
        self._frame = memoryview(frame)
        self._written: List[int] = []

    def write(self, descriptor: int) -> bool:
        """Writes as much as the pipe accepts. Returns True if the whole frame is written."""
        rest = self._frame[sum(self._written) :]
        if rest:
            self._written.extend(map(os.write, (descriptor,), (rest,)))
        return sum(self._written) == len(self._frame)
