"""A port for processes that meet at MASTER_PORT."""

import contextlib
import socket


@contextlib.contextmanager
def held_port():
    """A port that the system assigns to no other program until the end of the block, although one can listen on it.

    A socket that is bound and does not listen holds it: Linux then never chooses this port by itself, while a listener
    that names it and sets SO_REUSEADDR, as torch's stores do, gets it.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("", 0))
        yield holder.getsockname()[1]
