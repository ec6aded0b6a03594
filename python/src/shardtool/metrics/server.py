"""Serves the metrics of this process' loaders for Prometheus, in a thread.

Names and texts are those of packages/reader/src/loader/metrics/exposition.ts.
"""

from __future__ import annotations

import errno
import os
import socket
import threading
import weakref
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Tuple

from ..errors import OptionError, warn
from .address import MetricsAddress

if TYPE_CHECKING:
    from ..loader import Loader

#: Name of each metric, its type, what it is, and its name in ``Waits.totals``.
METRICS: Tuple[Tuple[str, str, str, str], ...] = (
    ("shardtool_loader_wait_seconds_total", "counter", "Time that the consumer waited for batches, by cause.",
     "wait_seconds"),
    ("shardtool_loader_consumer_seconds_total", "counter", "Time that the consumer worked on batches.",
     "consumer_seconds"),
    ("shardtool_loader_waiting_seconds", "gauge",
     "Time that the consumer has been waiting for the next batch; 0 if it does not wait.", "waiting_seconds"),
    ("shardtool_loader_batches_total", "counter", "Batches that were delivered.", "batches"),
    ("shardtool_loader_samples_total", "counter", "Rows of the batches that were delivered.", "samples"),
    ("shardtool_loader_bad_samples_total", "counter", "Samples that could not be used.", "bad_samples"),
    ("shardtool_loader_dropped_samples_total", "counter", "Samples that custom steps dropped.", "dropped_samples"),
    ("shardtool_loader_epoch", "gauge", "Epoch of the last batch; -1 before the first batch.", "epoch"),
    ("shardtool_loader_ready_batches", "gauge", "Batches that are ready and were not requested yet.",
     "ready_batches"),
    ("shardtool_storage_requests_total", "counter", "Requests to remote storage.", "storage_requests"),
    ("shardtool_storage_fetched_bytes_total", "counter",
     "Bytes received from remote storage, including those of failed requests.", "storage_fetched_bytes"),
    ("shardtool_storage_retries_total", "counter", "Requests to remote storage that were repeated.",
     "storage_retries"),
    ("shardtool_cache_hits_total", "counter", "Reads that were served from the cache.", "cache_hits"),
    ("shardtool_cache_hit_bytes_total", "counter", "Bytes of the reads that were served from the cache.",
     "cache_hit_bytes"),
)  # fmt: skip
_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exposition(loaders: List[Tuple[Mapping[str, str], Mapping[str, Any]]]) -> str:
    """The metrics of loaders, each with its labels, in Prometheus' text format."""
    lines: List[str] = []
    for name, kind, about, key in METRICS:
        lines += [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
        for labels, totals in loaders:
            values = totals[key]
            for more, value in values.items() if isinstance(values, Mapping) else ((None, values),):
                named = {**labels, "cause": more} if more is not None else labels
                said = ",".join(f'{label}="{text}"' for label, text in named.items())
                lines.append(f"{name}{{{said}}} {value}")
    return "\n".join(lines) + "\n"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    #: HTTP servers reuse addresses. On Linux, a port on which another process listens is an error all the same.
    allow_reuse_address = True

    #: Time after which the thread notices that no loader is left.
    timeout = 0.1

    def __init__(self, address: MetricsAddress) -> None:
        self.address_family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        self.loaders: weakref.WeakSet[Loader[Any, Any]] = weakref.WeakSet()
        self._address = address
        super().__init__((address.host, address.port), _Handler)
        # The thread ends with the process, which does not wait for it.
        self.thread = threading.Thread(target=self._run, name="shardtool metrics", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        """Serves until the last loader was closed or garbage-collected."""
        while self._has_loaders():
            self.handle_request()
        self.server_close()

    def _has_loaders(self) -> bool:
        with _CHANGING:
            if len(self.loaders) > 0:
                return True
            if _SERVERS.get(self._address) is self:
                del _SERVERS[self._address]
            return False

    def server_bind(self) -> None:
        # The method of HTTPServer looks up the name of the host, which can take seconds.
        socket.socket.bind(self.socket, self.server_address)
        self.server_address = self.socket.getsockname()

    def text(self) -> str:
        with _CHANGING:
            loaders = sorted(self.loaders, key=lambda loader: loader._waits.number)
        return exposition(
            [
                ({"rank": str(loader._waits.rank), "loader": str(loader._waits.number)}, loader._waits.totals())
                for loader in loaders
            ]
        )


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        if self.path.split("?")[0] != "/metrics":
            self.send_error(404, "Metrics are at GET /metrics.")
            return
        body = self.server.text().encode()
        self.send_response(200)
        self.send_header("Content-Type", _TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged."""


_SERVERS: Dict[MetricsAddress, _Server] = {}
_CHANGING = threading.Lock()


def serve(address: MetricsAddress, loader: Loader[Any, Any]) -> Optional[MetricsAddress]:
    """Serves a loader, together with other loaders of this process that use the same port. If the port from the
    environment cannot be used, warns and returns None. Raises OptionError for a port that an option names."""
    with _CHANGING:
        server = _SERVERS.get(address)
        if server is None:
            try:
                server = _Server(address)
            except (OSError, OverflowError) as error:
                _refuse(address, error)
                return None
            _SERVERS[address] = server
        server.loaders.add(loader)
    return address


def leave(address: MetricsAddress, loader: Loader[Any, Any]) -> None:
    """Stops serving the loader. The server ends with its last loader."""
    with _CHANGING:
        server = _SERVERS.get(address)
        if server is None:
            return
        server.loaders.discard(loader)
        if len(server.loaders) > 0:
            return
        del _SERVERS[address]
    server.thread.join()


def url_of(address: MetricsAddress) -> Optional[str]:
    server = _SERVERS.get(address)
    if server is None:
        return None
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"http://{host}:{server.server_address[1]}/metrics"


def _refuse(address: MetricsAddress, error: Exception) -> None:
    is_taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
    why = "another process uses this port" if is_taken else str(error)
    sentence = (
        f"Metrics cannot be served on {address.host}:{address.port} ({why}): set {address.source} to another port, or "
        "remove it."
    )
    if address.source == "metrics":
        raise OptionError(sentence) from error
    warn(f"{sentence} This process serves no metrics.")


def _forget() -> None:
    """In a forked process, whose threads have ended: closes its copies of the sockets."""
    global _CHANGING
    _CHANGING = threading.Lock()
    for server in _SERVERS.values():
        server.socket.close()
    _SERVERS.clear()


os.register_at_fork(after_in_child=_forget)
