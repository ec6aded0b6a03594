"""Measures the CPU time of a batch in the Python process, without that of the reader.

Arguments: shards, batch size, workers, seconds, [cuda]. With `cuda`, also measures batches on a GPU. Prints a line for each
kind of output.
"""

import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python" / "src"))

import shardtool

shards, batch_size, workers, seconds = sys.argv[1], *map(int, sys.argv[2:5])
outputs = {"numpy": {"output": "numpy"}, "torch": {}}
if sys.argv[5:] == ["cuda"]:
    normalize = {
        "dtype": "float16",
        "mean": [0.485, 0.456, 0.406],
        "std": [0.229, 0.224, 0.225],
    }
    outputs["pinned"] = {"pin_memory": True}
    outputs["cuda, uint8"] = {"device": "cuda"}
    outputs["cuda, float16"] = {"device": "cuda", **normalize}


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


for name, options in outputs.items():
    loader = shardtool.Loader(
        shards,
        batch_size=batch_size,
        transform="train224",
        workers=workers,
        last_batch="drop",
        **options,
    )
    # The first epoch does not count.
    batches, start, cpu = 0, None, 0.0
    while start is None or time.perf_counter() - start < seconds:
        for _ in loader:
            batches += 1
        if start is None:
            batches, start, cpu = 0, time.perf_counter(), cpu_seconds()
    cost = (cpu_seconds() - cpu) / batches * 1000
    rate = batches * batch_size / (time.perf_counter() - start)
    print(f"{name}: {rate:.0f} images/s, {cost:.2f} ms of CPU per batch", flush=True)
    loader.close()
