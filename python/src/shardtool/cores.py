"""CPU cores of this process, for numbers of workers (packages/base/src/available-cores.ts has the same rule)."""

from __future__ import annotations

import math
import os
from pathlib import Path, PurePosixPath


def cores_of_this_rank() -> int:
    """Cores of this process, divided by the ranks of this machine."""
    ranks = os.environ.get("LOCAL_WORLD_SIZE", "")
    return max(1, available_cores() // max(1, int(ranks) if ranks.isdigit() else 1))


def available_cores() -> int:
    """Cores of the affinity mask, but at most the CPU limit of the control group, rounded up."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    limit = cores_of_control_group(Path("/"))
    return min(cores, max(1, math.ceil(limit))) if limit < math.inf else cores


def cores_of_control_group(root: Path) -> float:
    """Smallest CPU limit, in cores, of the control groups of this process below the file system ``root``.

    Reads version 2 (cpu.max, https://docs.kernel.org/admin-guide/cgroup-v2.html) and version 1 (cpu.cfs_quota_us).
    """
    cores = math.inf
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, group = [*line.split(":", 2), "", ""][:3]
        if not group.startswith("/") or (controllers and "cpu" not in controllers.split(",")):
            continue
        for name in [group, *map(str, PurePosixPath(group).parents)]:
            folder = root / "sys/fs/cgroup" / controllers / name.lstrip("/")
            if controllers:
                limits = [_read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us")]
            else:
                limits = _read(folder / "cpu.max").split()
            # "max" and -1 stand for no limit.
            if len(limits) == 2 and all(limit.isdigit() and int(limit) > 0 for limit in limits):
                cores = min(cores, int(limits[0]) / int(limits[1]))
    return cores


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""  # Not Linux, not mounted, or a group outside the container's namespace.
