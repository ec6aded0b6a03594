"""What goes over the pipes between this process and the reader (packages/reader/src/bridge/frames.ts).

A frame is its length in bytes without these four (uint32, little endian), the length of its header (uint32), the header
(JSON in UTF-8), and what the header announces as plain bytes.

What a signal's handler raises (KeyboardInterrupt) may end any wait for a pipe, and the next frame is still read and
written from its first byte on: the calls that read and write are made by ``list.extend``, and the interpreter runs no
handler between such a call and the place where its result is kept.
"""

from __future__ import annotations

import json
import os
import struct
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

_LENGTH = struct.Struct("<I")
_LENGTHS = struct.Struct("<II")


def encode_frame(header: Dict[str, Any], parts: Sequence[bytes] = ()) -> bytes:
    """Raises TypeError where JSON cannot say the header."""
    text = json.dumps(header, allow_nan=False).encode()
    length = _LENGTH.size + len(text) + sum(map(len, parts))
    return b"".join((_LENGTHS.pack(length, len(text)), text, *parts))


class Frame(NamedTuple):
    header: Dict[str, Any]
    #: The bytes after the header.
    rest: memoryview


class FrameDecoder:
    """Puts frames together from pieces of any length."""

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
        """Of the oldest frame, the length itself included."""
        if self._bytes() < _LENGTHS.size:
            return None
        if len(self._pieces[0]) < _LENGTH.size:
            self._pieces = [b"".join(self._pieces)]
        return _LENGTH.size + int(_LENGTH.unpack_from(self._pieces[0])[0])

    def _bytes(self) -> int:
        return sum(map(len, self._pieces))


class OutgoingFrame:
    """A frame on its way into a pipe."""

    def __init__(self, frame: bytes) -> None:
        self._frame = memoryview(frame)
        self._written: List[int] = []

    def write(self, descriptor: int) -> bool:
        """Writes as much as the pipe takes. True: the whole frame is written."""
        rest = self._frame[sum(self._written) :]
        if rest:
            self._written.extend(map(os.write, (descriptor,), (rest,)))
        return sum(self._written) == len(self._frame)
