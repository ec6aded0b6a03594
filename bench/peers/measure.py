"""Shared code of the contestants in Python: their arguments, and the timing of batches.

A contestant passes `measure` a function that builds its loader. The result is printed as one line of JSON. Memory is
sampled from outside (process-tree.mjs), in the same way for every contestant.
"""

import os

# One thread per worker: libraries that start threads of their own would take the cores of other workers.
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OPENCV_FOR_THREADS_NUM"):
    os.environ.setdefault(variable, "1")

import argparse
import json
import math
import random
import sys
import time

SIZE = 224
SCALE = (0.08, 1.0)
RATIO = (3 / 4, 4 / 3)
# Fast loaders run more epochs, for at least this time, because a run of a second or two is not accurate.
LEAST_SECONDS = 5
WARM = "measure: the first epoch has ended"


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--photos", help="folder of class folders of JPEGs")
    parser.add_argument("--shards", help="folder of tar shards")
    parser.add_argument("--prepared", help="the file or folder in the contestant's own format")
    parser.add_argument("--prepare", action="store_true", help="write --prepared and exit")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=3, help="the first one warms up, the others count")
    parser.add_argument("--variant", default="", help="which of a file's contestants runs")
    return parser.parse_args()


def list_photos(folder):
    """[(path, class number)], with classes numbered as by torchvision's ImageFolder: class folders sorted by name."""
    classes = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    return [
        (os.path.join(folder, name, file), number)
        for number, name in enumerate(classes)
        for file in sorted(os.listdir(os.path.join(folder, name)))
    ]


def list_shards(folder):
    return sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".tar"))


def random_box(width, height, scale, ratio, uniform=random.random):
    """(left, top, width, height) of a random crop, drawn as by torchvision's RandomResizedCrop.get_params.

    For loaders without such a step: ten tries, then the largest centred crop of a permitted ratio.
    """
    for _ in range(10):
        area = width * height * (scale[0] + (scale[1] - scale[0]) * uniform())
        aspect = math.exp(math.log(ratio[0]) + (math.log(ratio[1]) - math.log(ratio[0])) * uniform())
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            return int(uniform() * (width - w + 1)), int(uniform() * (height - h + 1)), w, h
    w, h = min(width, round(height * ratio[1])), min(height, round(width / ratio[0]))
    return (width - w) // 2, (height - h) // 2, w, h


def percentile(values, share):
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def processor_seconds():
    """User and system time of this process and of all that it has started, including those that have ended (Linux).

    A process that has ended is included in the sum of the process that waited for it (proc(5), cutime and cstime).
    """
    ticks = 0
    open_pids = [str(os.getpid())]
    while open_pids:
        pid = open_pids.pop()
        try:
            with open(f"/proc/{pid}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            ticks += sum(int(field) for field in fields[11:15])
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/children") as file:
                    open_pids += file.read().split()
        except OSError:
            continue
    return ticks / os.sysconf("SC_CLK_TCK")


def measure(name, version, build, arguments, notes=""):
    """Times `build(arguments)`, which returns a function that starts an epoch: an iterator of uint8 image batches.

    The rate is that of whole epochs after the first, including their ends. Waits are those of the same epochs, without
    the first batch of each. `firstBatchMs` starts when the loader is built, after the imports. `notes` can be a
    function, which is called at the end.
    """
    started = time.perf_counter()
    start_epoch = build(arguments)
    first_batch_ms = None
    waits = []
    images = 0
    seconds = 0.0
    epoch = 0
    processor = 0.0
    while epoch < arguments.epochs or seconds < LEAST_SECONDS:
        busy_before = processor_seconds()
        epoch_started = last = time.perf_counter()
        epoch_images = 0
        for batch in start_epoch():
            touch(batch)
            now = time.perf_counter()
            if first_batch_ms is None:
                first_batch_ms = (now - started) * 1000
            if epoch > 0 and epoch_images > 0:
                waits.append((now - last) * 1000)
            last = now
            epoch_images += len(batch)
        if epoch > 0:
            images += epoch_images
            seconds += time.perf_counter() - epoch_started
            processor += processor_seconds() - busy_before
        if epoch == 0:
            # run.mjs measures memory until this line.
            print(WARM, file=sys.stderr, flush=True)
        epoch += 1
    print(
        json.dumps(
            {
                "name": name,
                "version": version,
                "imagesPerSecond": round(images / seconds, 1),
                "cpuSecondsPer1000": round(1000 * processor / images, 2),
                "batchWaitP50Ms": round(percentile(waits, 0.5), 1),
                "batchWaitP99Ms": round(percentile(waits, 0.99), 1),
                "firstBatchMs": round(first_batch_ms, 1),
                "imagesPerEpoch": epoch_images,
                "notes": notes() if callable(notes) else notes,
            }
        ),
        flush=True,
    )


def touch(batch):
    """The only work of the consumer with a batch."""
    if "uint8" not in str(batch.dtype):
        raise TypeError(f"a batch has the type {batch.dtype}, not uint8")
    if SIZE * SIZE * 3 != math.prod(batch.shape[1:]):
        raise ValueError(f"a batch has the shape {tuple(batch.shape)}")
    return int(batch[0][0][0][0])
