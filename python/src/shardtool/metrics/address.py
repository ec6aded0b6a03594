"""The address at which a process serves its metrics, by the rules of packages/reader/src/loader/metrics/address.ts."""

from __future__ import annotations

import re
from typing import Any, Mapping, NamedTuple, Optional

from ..errors import OptionError

_LOOPBACK = "127.0.0.1"
_LAST_PORT = 65_535
#: Sends metrics by OTLP, and serves none.
OTLP = "otlp"


class MetricsAddress(NamedTuple):
    """A host and port to listen on. ``source``: the setting, for messages."""

    host: str
    port: int
    source: str


def check_metrics(metrics: Any) -> None:
    """Raises OptionError unless ``metrics`` is None, False, "otlp", or a mapping with a port."""
    if metrics is None or metrics is False or metrics == OTLP:
        return
    is_right = isinstance(metrics, Mapping) and set(metrics) <= {"port", "host"} and _is_port(metrics.get("port"))
    host = metrics.get("host") if is_right else None
    if not is_right or not (host is None or (isinstance(host, str) and host)):
        raise OptionError(
            f'metrics must be {{"port": 9464}}, {{"port": 9464, "host": "0.0.0.0"}}, "otlp", or False, not {metrics!r}.'
        )


def metrics_address(metrics: Any, environment: Mapping[str, str]) -> Optional[MetricsAddress]:
    """None: nothing is served. Raises OptionError if SHARDTOOL_METRICS is not a port, host and port, or "otlp"."""
    if metrics is False or metrics == OTLP:
        return None
    if metrics is not None:
        return _of_local_rank(metrics.get("host") or _LOOPBACK, metrics["port"], "metrics", environment)
    text = environment.get("SHARDTOOL_METRICS", "")
    if text in ("", OTLP):
        return None
    found = re.fullmatch(r"(?:(\[[^\]]+\]|[^:\[\]]*):)?([0-9]{1,5})", text)
    if found is None or not _is_port(int(found[2])):
        raise OptionError(
            f'SHARDTOOL_METRICS is "{text}": set it to a port such as ":9464", to a host and port such as '
            '"0.0.0.0:9464", to "otlp", or unset it.'
        )
    host = (found[1] or "").strip("[]") or _LOOPBACK
    return _of_local_rank(host, int(found[2]), "SHARDTOOL_METRICS", environment)


def _is_port(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LAST_PORT


def _of_local_rank(host: str, port: int, source: str, environment: Mapping[str, str]) -> MetricsAddress:
    """Processes of one machine cannot share a port."""
    text = environment.get("LOCAL_RANK") or environment.get("SLURM_LOCALID") or "0"
    local = int(text) if port != 0 and re.fullmatch(r"[0-9]{1,5}", text) else 0
    if port + local > _LAST_PORT:
        raise OptionError(f"{source} gives local rank {local} the port {port + local}: choose a lower port.")
    return MetricsAddress(host, port + local, source)
