"""Finds the rank of a process. The reader chooses among the findings (packages/reader/src/order/ranks.ts)."""

from __future__ import annotations

import os
import sys
from typing import Any, Dict, List, Optional

#: Variables of torchrun, Lightning and Slurm.
_VARIABLES = (
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "NODE_RANK",
    "GROUP_RANK",
    "TORCHELASTIC_RUN_ID",
    "SLURM_PROCID",
    "SLURM_NTASKS",
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
    "SLURM_JOB_NAME",
)


def rank_sources() -> Dict[str, Any]:
    """The values that currently determine the rank of this process. A framework may start its processes after a loader
    was made."""
    return {
        "environment": {name: os.environ[name] for name in _VARIABLES if name in os.environ},
        "distributed": _distributed_rank(),
    }


def _distributed_rank() -> Optional[List[int]]:
    """Rank and world size of torch.distributed, if the program has imported and initialised it."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return [int(distributed.get_rank()), int(distributed.get_world_size())]
