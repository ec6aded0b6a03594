"""Finds the rank of a process. The reader chooses among the findings (packages/reader/src/order/ranks.ts)."""

from __future__ import annotations

import os
import sys
from typing import Any, Dict, Optional, Tuple

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
            {"rank": rank[0], "worldSize": rank[1], "source": name}
            for name, rank in (("torch.distributed", _torch_rank()), ("jax.distributed", _jax_rank()))
            if rank is not None
        ],
    }


def _torch_rank() -> Optional[Tuple[int, int]]:
    """Rank and world size of torch.distributed, if the program has imported and initialised it."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return int(distributed.get_rank()), int(distributed.get_world_size())


def _jax_rank() -> Optional[Tuple[int, int]]:
    """The same of jax.distributed."""
    # jax.process_index() would start the backends of JAX, which must not happen in a forked process.
    state: Any = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
    if getattr(state, "client", None) is None:
        return None
    return int(state.process_id), int(state.num_processes)
