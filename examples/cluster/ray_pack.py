"""Packs a folder in parts, one Ray task per part: python ray_pack.py photos/ shards/ 16 [options of shardtool pack]"""

import os
import subprocess
import sys

import ray

if len(sys.argv) < 4:
    sys.exit(__doc__)
source, output, parts, *options = sys.argv[1:]
shardtool = os.environ.get("SHARDTOOL", "npx shardtool").split()


@ray.remote(num_cpus=2, max_retries=3, retry_exceptions=True)
def pack(part: int) -> None:
    command = [*shardtool, "pack", source, output, "--part", f"{part}/{parts}", "--workers", "2", *options]
    subprocess.run(command, check=True)


ray.init()
ray.get([pack.remote(part) for part in range(1, int(parts) + 1)])
