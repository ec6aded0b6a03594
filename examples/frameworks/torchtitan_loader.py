"""A dataloader for torchtitan: set `config.dataloader = ShardDataLoader.Config(dataset_path="shards/")`.

The program below uses it as torchtitan's Trainer does, without a model, and saves its position with torch's distributed
checkpoints. A run that was stopped resumes with the next batch, also with another number of processes.

torchrun --nproc_per_node=2 examples/frameworks/torchtitan_loader.py --data shards/ --batch-size 8 --steps 3
python examples/frameworks/torchtitan_loader.py --data shards/ --batch-size 16 --steps 3 --resume
"""

import argparse
import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed.checkpoint
from torchtitan.components.dataloader import BaseDataLoader

import shardtool


class ShardDataLoader(BaseDataLoader):
    """Batches `({"image": images, "index": indices}, labels)`, epoch after epoch, without an end."""

    @dataclass(kw_only=True, slots=True)
    class Config(BaseDataLoader.Config):
        transform: str = "train224"
        seed: int = 42

    def __init__(
        self, config: Config, *, dp_world_size: int, dp_rank: int, local_batch_size: int, **_of_trainer: Any
    ) -> None:
        self._loader = shardtool.Loader(
            config.dataset_path, transform=config.transform, seed=config.seed, batch_size=local_batch_size,
            rank=dp_rank, world_size=dp_world_size, last_batch="drop", epochs_per_loop=math.inf,
        )  # fmt: skip

    def __iter__(self) -> Iterator[tuple[dict[str, torch.Tensor], torch.Tensor]]:
        for batch in self._loader:
            yield {"image": batch.images, "index": batch.indices}, batch.labels

    def state_dict(self) -> dict[str, Any]:
        # One text, the same on all ranks: a checkpoint then does not depend on their number.
        return {"shardtool": json.dumps(self._loader.state_dict())}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if state_dict:
            self._loader.load_state_dict(json.loads(state_dict["shardtool"]))

    def close(self) -> None:
        self._loader.close()


def main() -> None:
    options = argparse.ArgumentParser(description="Reads shards through torchtitan's interface of dataloaders.")
    options.add_argument("--data", required=True, help="a dataset that `shardtool pack` wrote")
    options.add_argument("--batch-size", type=int, default=16, help="rows on each process")
    options.add_argument("--steps", type=int, default=3)
    options.add_argument("--checkpoint", default="checkpoint")
    options.add_argument("--resume", action="store_true")
    args = options.parse_args()

    rank, world_size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if world_size > 1:
        torch.distributed.init_process_group("gloo")
    # What torchtitan's Trainer passes. It has its own ranks of the data-parallel group.
    dataloader = ShardDataLoader.Config(dataset_path=args.data).build(
        dp_world_size=world_size, dp_rank=rank, tokenizer=None, seq_len=0, local_batch_size=args.batch_size,
        snapshot_every_n_steps=None,
    )  # fmt: skip
    if args.resume:
        torch.distributed.checkpoint.load({"dataloader": dataloader}, checkpoint_id=args.checkpoint)
    batches = iter(dataloader)
    for step in range(args.steps):
        inputs, labels = next(batches)
        print(f"rank {rank} step {step} samples {inputs['index'].tolist()} labels {labels.tolist()}", flush=True)
    torch.distributed.checkpoint.save({"dataloader": dataloader}, checkpoint_id=args.checkpoint)
    dataloader.close()
    if world_size > 1:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
