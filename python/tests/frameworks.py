"""Programs of the tests with real frameworks: each runs in a separate process, or in several under torchrun."""

import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from ports import held_port

from datasets import CHECKOUT, pack


def needs(*names):
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} is not installed")


#: Start of each program. `see` checks the received batches: the red value of each pixel is the number of the sample,
#: and its class is half of it. It keeps a line for each valid row: the number, and a checksum of all pixels.
#: It also keeps every second batch until `save`, when its pixels must still be the same.
HEAD = """
import json, os, sys, warnings, zlib
import shardtool, torch
from torch.utils.data import DataLoader

PLACE, OUT = sys.argv[1:3]
OPTIONS = json.loads(sys.argv[3])
RANDOM = [{"name": "random_resized_crop", "size": 8}, {"name": "random_horizontal_flip"}]
SEEN = []
KEPT = []

def crc(image):
    return zlib.crc32(image.permute(1, 2, 0).contiguous().numpy())

def lines(images, labels, valid):
    numbers = images[:, 0, 0, 0].long()
    assert bool((images[:, 0] == images[:, 0, :1, :1]).all()), "rows of other samples in an image"
    assert torch.equal(numbers[valid] // 2, labels[valid]), (numbers, labels, valid)
    return [[int(number), crc(image)] for number, image, is_valid in zip(numbers, images, valid) if is_valid]

def see(what, images, labels, valid):
    SEEN.append([what, lines(images, labels, valid)])
    if len(SEEN) % 2 == 1:
        KEPT.append([images, labels, valid, SEEN[-1][1]])

def save(rank):
    for images, labels, valid, before in KEPT:
        assert lines(images, labels, valid) == before, "a kept batch has changed"
    with open(os.path.join(OUT, f"seen-{rank}.json"), "w") as file:
        json.dump(SEEN, file)
"""


def run_program(program, place, folder, options=(), ranks=None, environment=(), code=0, more=()):
    """The rows of each rank. `ranks` are started by torchrun; None is a plain process. `more`: further arguments."""
    folder.mkdir(exist_ok=True)
    script = folder / "program.py"
    script.write_text(program)
    launcher = [] if ranks is None else ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={ranks}"]
    command = [*launcher, script, place, folder, json.dumps(dict(options)), *more]
    with held_port() as port:
        # Lightning starts processes itself, and would look for a free port that another program may take meanwhile.
        given = {"OMP_NUM_THREADS": "1", "MASTER_PORT": str(port), **dict(environment)}
        done = subprocess.run(
            [sys.executable, *map(str, command)],
            env={**os.environ, "PYTHONPATH": str(CHECKOUT / "python" / "src"), **given},
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
    assert done.returncode == code, done.stderr + done.stdout
    return [json.loads(file.read_text()) for file in sorted(folder.glob("seen-*.json"))]


def numbered_images(folder, count):
    """Images whose red value is the number of the sample, and whose class is half of it. Crops differ in the others.

    Each has a field `txt` with its number.
    """
    ramp = np.arange(16, dtype=np.uint8) * 15
    for number in range(count):
        pixels = np.stack(np.broadcast_arrays(np.uint8(number), ramp[:, None], ramp[None, :]), axis=-1)
        file = folder / f"{number // 2:02}" / f"{number:02}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(file)
        file.with_suffix(".txt").write_text(str(number))


def pack_numbered(folder, count):
    numbered_images(folder / "images", count)
    return pack(folder / "images", folder / "shards", "--max-shard-samples", "20")


def global_batches(ranks, what):
    """In the batches called `what`, the rows of all ranks together, sorted: the same with any number of ranks."""
    of_ranks = [[rows for name, rows in seen if name == what] for seen in ranks]
    assert len({len(batches) for batches in of_ranks}) == 1, "ranks have different numbers of batches"
    return [sorted(row for rows in batch for row in rows) for batch in zip(*of_ranks)]


def numbers_of(batches):
    return [number for rows in batches for number, _ in rows]
