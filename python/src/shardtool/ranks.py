"""Finds the rank of a process. The reader chooses among the findings (packages/reader/src/order/ranks.ts)."""

from __future__ import annotations

import os
import sys
from typing import Any, Dict, Tuple

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
        "frameworks": [
            {"rank": int(rank), "worldSize": int(world_size), "source": name}
            for name, (rank, world_size) in (("torch.distributed", _torch_rank()), ("jax.distributed", _jax_rank()))
            if world_size is not None
        ],
    }


def _torch_rank() -> Tuple[Any, Any]:
    """Rank and world size of torch.distributed, or None twice if the program has not imported and initialised it."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None, None
    return distributed.get_rank(), distributed.get_world_size()


def _jax_rank() -> Tuple[Any, Any]:
    """The same for jax.distributed."""
    # jax.process_index() would start the backends of JAX, which must not happen in a forked process.
    state = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
    if getattr(state, "client", None) is None:
        return None, None
    return getattr(state, "process_id", None), getattr(state, "num_processes", None)
