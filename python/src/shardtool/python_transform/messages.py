"""Messages between the parent and a worker: pickled objects and file descriptors, over a socket."""

from __future__ import annotations

import array
import pickle
import socket
import struct
from collections import deque
from typing import Any, Deque, List, Tuple

_LENGTH = struct.Struct("<I")
_PIECE_BYTES = 1 << 16


class Outgoing:
    """Messages to send. They wait here while the socket is full."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._waiting: Deque[Tuple[memoryview, List[int]]] = deque()

    def push(self, message: Any, descriptors: Tuple[int, ...] = ()) -> None:
        text = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        self._waiting.append((memoryview(_LENGTH.pack(len(text)) + text), list(descriptors)))

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def flush(self) -> None:
        """Sends as much as the socket takes. Raises OSError if the other end is closed."""
        while self._waiting:
            rest, descriptors = self._waiting[0]
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
            try:
                sent = self._connection.sendmsg([rest[:_PIECE_BYTES]], ancillary)
            except BlockingIOError:
                return
            if sent == len(rest):
                self._waiting.popleft()
            else:
                self._waiting[0] = (rest[sent:], [])


class Incoming:
    """Received messages, which may arrive in pieces, and their file descriptors."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._bytes = bytearray()
        self.descriptors: Deque[int] = deque()

    def read(self) -> bool:
        """Reads a piece. Returns False at the end of the stream."""
        space = socket.CMSG_LEN(4 * array.array("i").itemsize)
        piece, ancillary, _, _ = self._connection.recvmsg(_PIECE_BYTES, space)
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                received = array.array("i")
                received.frombytes(data[: len(data) - len(data) % received.itemsize])
                self.descriptors.extend(received)
        self._bytes += piece
        return bool(piece)

    def take(self) -> Any:
        """The oldest message, or None while it is incomplete."""
        if len(self._bytes) < _LENGTH.size:
            return None
        end = _LENGTH.size + _LENGTH.unpack_from(self._bytes)[0]
        if len(self._bytes) < end:
            return None
        message = pickle.loads(bytes(self._bytes[_LENGTH.size : end]))
        del self._bytes[:end]
        return message
