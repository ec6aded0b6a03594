"""Sends the metrics of this process' loaders to a collector, as JSON over HTTP.

Rules and variables are those of packages/reader/src/loader/metrics/otlp-target.ts, and the form is that of otlp.ts next
to it (https://opentelemetry.io/docs/specs/otlp/).
"""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import threading
import time
import urllib.parse
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Tuple, Union

from ..errors import OptionError, warn
from .address import OTLP
from .server import METRICS

if TYPE_CHECKING:
    from ..loader import Loader

_TIMEOUT_MS = 10_000
_INTERVAL_MS = 60_000
#: A wait of a thread cannot be much longer on all systems.
_MOST_MS = 2**31
#: Bytes of an answer that are read. The answer to a request is an object with at most two values.
_MOST_ANSWER = 65_536
#: AGGREGATION_TEMPORALITY_CUMULATIVE of metrics.proto: counts since the loader was made.
_CUMULATIVE = 2


class OtlpTarget(NamedTuple):
    """A collector. ``headers`` and ``resource`` are sorted pairs, so that targets can be compared."""

    url: str
    headers: Tuple[Tuple[str, str], ...]
    interval: float
    timeout: float
    resource: Tuple[Tuple[str, str], ...]


def otlp_target(metrics: Any, environment: Mapping[str, str]) -> Optional[OtlpTarget]:
    """Where to send metrics. None unless metrics are requested, and OTEL_EXPORTER_OTLP_ENDPOINT names a collector.

    Raises OptionError if "otlp" is requested and the variables cannot be used. If only a port is requested, that is a
    warning.
    """
    requested = environment.get("SHARDTOOL_METRICS", "") if metrics is None else metrics
    is_off = (
        environment.get("OTEL_SDK_DISABLED", "").lower() == "true"
        or environment.get("OTEL_METRICS_EXPORTER", "") == "none"
    )
    if requested is False or requested == "" or is_off:
        return None
    try:
        target = _target(environment)
        if target is None and requested == OTLP:
            raise OptionError(
                "Metrics are to be sent by OTLP, but OTEL_EXPORTER_OTLP_ENDPOINT is not set: set it to the address of "
                'a collector, such as "http://127.0.0.1:4318".'
            )
        return target
    except OptionError as error:
        if requested == OTLP:
            raise
        warn(f"{error} This process sends no metrics.")
        return None


def _target(environment: Mapping[str, str]) -> Optional[OtlpTarget]:
    def value_of(name: str) -> Optional[Tuple[str, str]]:
        value = environment.get(name, "").strip()
        return (name, value) if value else None

    def of_metrics(name: str) -> Optional[Tuple[str, str]]:
        # The variable for metrics precedes the one for all signals.
        return value_of(f"OTEL_EXPORTER_OTLP_METRICS_{name}") or value_of(f"OTEL_EXPORTER_OTLP_{name}")

    endpoint = of_metrics("ENDPOINT")
    if endpoint is None:
        return None
    protocol = of_metrics("PROTOCOL")
    if protocol is not None and not protocol[1].startswith("http/"):
        raise OptionError(
            f'{protocol[0]} is "{protocol[1]}", but metrics are sent as JSON over HTTP: set '
            'OTEL_EXPORTER_OTLP_METRICS_PROTOCOL to "http/json", and OTEL_EXPORTER_OTLP_METRICS_ENDPOINT to the '
            "collector's address for HTTP, usually port 4318."
        )
    headers = of_metrics("HEADERS")
    resource = {"service.name": "shardtool"}
    attributes = value_of("OTEL_RESOURCE_ATTRIBUTES")
    if attributes is not None:
        resource.update(_pairs(*attributes))
    service = value_of("OTEL_SERVICE_NAME")
    if service is not None:
        resource["service.name"] = service[1]
    return OtlpTarget(
        _url(*endpoint),
        () if headers is None else _headers(*headers),
        _seconds(value_of("OTEL_METRIC_EXPORT_INTERVAL"), _INTERVAL_MS),
        _seconds(of_metrics("TIMEOUT"), _TIMEOUT_MS),
        tuple(sorted(resource.items())),
    )


def _seconds(found: Optional[Tuple[str, str]], otherwise: int) -> float:
    if found is None:
        return otherwise / 1000
    name, text = found
    if not re.fullmatch(r"[0-9]{1,10}", text) or not 0 < int(text) < _MOST_MS:
        raise OptionError(f'{name} is "{text}": set it to a number of milliseconds, or unset it.')
    return int(text) / 1000


def _url(name: str, value: str) -> str:
    """The variable for metrics has the whole URL; the one for all signals the part before ``/v1/metrics``."""
    try:
        url = urllib.parse.urlsplit(value)
        is_right = url.scheme in ("http", "https") and bool(url.hostname) and url.username is None
        url.port  # noqa: B018 (raises ValueError if the port is not a number)
    except ValueError:
        is_right = False
    if not is_right:
        raise OptionError(
            f'{name} is not the address of a collector: set it to a URL such as "http://127.0.0.1:4318", and '
            "credentials to OTEL_EXPORTER_OTLP_HEADERS."
        )
    if name == "OTEL_EXPORTER_OTLP_ENDPOINT":
        url = url._replace(path=url.path.rstrip("/") + "/v1/metrics")
    return url.geturl()


def _pairs(name: str, text: str) -> Dict[str, str]:
    """``key=value,key=value``, with values encoded as in URLs. Messages do not show values, which may be secret."""
    pairs: Dict[str, str] = {}
    for part in text.split(","):
        if part.strip() == "":
            continue
        key, is_pair, value = (piece.strip() for piece in part.partition("="))
        try:
            if not is_pair or key == "" or re.search(r"%(?![0-9A-Fa-f]{2})", value):
                raise ValueError
            pairs[key] = urllib.parse.unquote(value, errors="strict")
        except ValueError:
            raise OptionError(
                f'{name} cannot be read: set it to pairs such as "key=value,other=value", with special characters '
                'encoded as in URLs ("%20").'
            ) from None
    return pairs


def _headers(name: str, text: str) -> Tuple[Tuple[str, str], ...]:
    """Headers that HTTP cannot send are refused here, since errors of http.client show their values."""
    headers = {key: value.strip() for key, value in _pairs(name, text).items()}
    for key, value in headers.items():
        if not re.fullmatch(r"[\w!#$%&'*+.^`|~-]+", key, re.ASCII) or not re.fullmatch(r"[\t -~\x80-\xff]*", value):
            raise OptionError(
                f"{name} has a header with a character that HTTP does not allow, such as a line break: remove that "
                "character."
            )
    return tuple(sorted(headers.items()))


class _Sender:
    """Sends until :meth:`end`, or until all loaders were garbage-collected, in a thread that the process does not wait
    for."""

    def __init__(self, target: OtlpTarget) -> None:
        self._target = target
        self.loaders: weakref.WeakSet[Loader[Any, Any]] = weakref.WeakSet()
        self._ended = threading.Event()
        self._sending = threading.Lock()
        self._has_failed = False
        threading.Thread(target=self._run, name="shardtool metrics by OTLP", daemon=True).start()

    def end(self) -> None:
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(self._target.interval) and self._has_loaders():
            self._warn(self._send())

    def _has_loaders(self) -> bool:
        with _CHANGING:
            if len(self.loaders) > 0:
                return True
            if _SENDERS.get(self._target) is self:
                del _SENDERS[self._target]
            return False

    def send_last(self) -> None:
        """Sends the counts of now. Waits no longer than for one request, whatever the collector does."""
        error: Optional[Exception] = socket.timeout()

        def send() -> None:
            nonlocal error
            error = self._send()

        thread = threading.Thread(target=send, name="shardtool last metrics by OTLP", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # While Python shuts down.
            send()
        else:
            thread.join(self._target.timeout)
        self._warn(error)

    def _send(self) -> Optional[Exception]:
        """Sends the counts of now. Returns the error, if there was one: later counts contain these."""
        timeout = self._target.timeout
        if not self._sending.acquire(timeout=timeout):
            return socket.timeout()
        try:
            with _CHANGING:
                loaders = sorted(self.loaders, key=lambda loader: loader._waits.number)
            _post(self._target, otlp_body(self._target.resource, [_counts(loader) for loader in loaders]), timeout)
            return None
        except (OSError, ValueError, http.client.HTTPException) as error:
            return error
        finally:
            self._sending.release()

    def _warn(self, error: Optional[Exception]) -> None:
        """Warns of the first error."""
        # A request may still be in flight when the last loader ends.
        if error is None or self._has_failed or self._ended.is_set():
            return
        self._has_failed = True
        why = "no answer in time" if isinstance(error, socket.timeout) else str(error) or type(error).__name__
        # A query may have a secret.
        where = self._target.url.split("?")[0]
        warn(
            f"Metrics could not be sent to {where} ({why}): check OTEL_EXPORTER_OTLP_ENDPOINT and that the collector "
            f"runs. The loader continues, and sends them again every {self._target.interval:g} s."
        )


def _counts(loader: Loader[Any, Any]) -> Tuple[Mapping[str, str], Mapping[str, Any], float]:
    waits = loader._waits
    return {"rank": str(waits.rank), "loader": str(waits.number)}, waits.totals(), waits.since


def _post(target: OtlpTarget, body: str, timeout: float) -> None:
    url = urllib.parse.urlsplit(target.url)
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = kind(url.hostname or "", url.port, timeout=timeout)
    # The timeout of a connection begins again with each byte.
    is_late = threading.Event()
    limit = threading.Timer(timeout, _cut, (connection, is_late))
    limit.daemon = True
    limit.start()
    try:
        headers = {**dict(target.headers), "content-type": "application/json"}
        connection.request("POST", (url.path or "/") + (f"?{url.query}" if url.query else ""), body.encode(), headers)
        answer = connection.getresponse()
        text = answer.read(_MOST_ANSWER).decode(errors="replace")
    except (OSError, http.client.HTTPException):
        if not is_late.is_set():
            raise
    finally:
        limit.cancel()
        connection.close()
    if is_late.is_set():
        raise socket.timeout()
    if not 200 <= answer.status < 300:
        raise ValueError(f"status {answer.status}")
    rejected = re.search(r'"rejectedDataPoints"\s*:\s*"?([1-9][0-9]*)', text)
    if rejected is not None:
        raise ValueError(f"the collector rejected {rejected[1]} values")


def _cut(connection: http.client.HTTPConnection, is_late: threading.Event) -> None:
    """Ends a request that takes too long: its reads end at once."""
    is_late.set()
    if connection.sock is not None:
        with suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)


def otlp_body(
    resource: Tuple[Tuple[str, str], ...],
    loaders: List[Tuple[Mapping[str, str], Mapping[str, Any], float]],
    now: Optional[float] = None,
) -> str:
    """The metrics of loaders as an ExportMetricsServiceRequest in JSON. Times are in nanoseconds, as texts."""
    at = _nanoseconds(time.time() if now is None else now)
    metrics: List[Dict[str, Any]] = []
    for name, kind, about, key in METRICS:
        points: List[Dict[str, Any]] = []
        for labels, totals, since in loaders:
            values = totals[key]
            for more, value in values.items() if isinstance(values, Mapping) else ((None, values),):
                named = {**labels, "cause": more} if more is not None else labels
                points.append(
                    {
                        "attributes": _attributes(named),
                        "startTimeUnixNano": _nanoseconds(since),
                        "timeUnixNano": at,
                        "asDouble": value,
                    }
                )
        data: Dict[str, Any] = {"dataPoints": points}
        if kind == "counter":
            data = {"aggregationTemporality": _CUMULATIVE, "isMonotonic": True, **data}
        shape = "sum" if kind == "counter" else "gauge"
        metrics.append({"name": name, "description": about, "unit": _unit(name), shape: data})
    process: Dict[str, Union[str, int]] = {"host.name": socket.gethostname(), "process.pid": os.getpid()}
    process.update(resource)
    scope = {"scope": {"name": "shardtool"}, "metrics": metrics}
    return json.dumps(
        {"resourceMetrics": [{"resource": {"attributes": _attributes(process)}, "scopeMetrics": [scope]}]}
    )


def _attributes(values: Mapping[str, Union[str, int]]) -> List[Dict[str, Any]]:
    return [
        {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
        for key, value in values.items()
    ]


def _nanoseconds(seconds: float) -> str:
    return f"{round(seconds * 1000)}000000"


def _unit(name: str) -> str:
    """By UCUM, as the semantic conventions ask. Counts have none: "1" would become "_ratio" in Prometheus."""
    if re.search(r"_seconds(_total)?$", name):
        return "s"
    return "By" if name.endswith("_bytes_total") else ""


_SENDERS: Dict[OtlpTarget, _Sender] = {}
_CHANGING = threading.Lock()


def send(target: OtlpTarget, loader: Loader[Any, Any]) -> None:
    """Sends the metrics of a loader from now on, together with those of other loaders of this process."""
    with _CHANGING:
        sender = _SENDERS.get(target)
        if sender is None:
            sender = _SENDERS[target] = _Sender(target)
        sender.loaders.add(loader)


def leave(target: OtlpTarget, loader: Loader[Any, Any]) -> None:
    """Sends the metrics of the loader a last time. The sender ends with its last loader."""
    sender = _SENDERS.get(target)
    if sender is None:
        return
    sender.send_last()
    with _CHANGING:
        sender.loaders.discard(loader)
        if len(sender.loaders) == 0 and _SENDERS.get(target) is sender:
            sender.end()
            del _SENDERS[target]


def _forget() -> None:
    """In a forked process, whose threads have ended."""
    global _CHANGING
    _CHANGING = threading.Lock()
    _SENDERS.clear()


os.register_at_fork(after_in_child=_forget)
