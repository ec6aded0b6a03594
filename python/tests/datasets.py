"""Datasets for the tests, packed by the command line tool of the checkout; and comparisons of batches."""

import json
import os
import re
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

CHECKOUT = Path(__file__).resolve().parents[2]


def run_node(*arguments, timeout=120):
    done = subprocess.run(
        ["node", *map(str, arguments)], cwd=CHECKOUT, capture_output=True, text=True, timeout=timeout, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def python_lines(program, *arguments, timeout=120):
    """Runs a Python program in a separate process and returns its output."""
    done = subprocess.run(
        [sys.executable, program, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT / "python" / "src")},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def run_page(page, folder, shards):
    """Runs the Python blocks of a page in order. Their relative folders are in `folder`."""
    blocks = re.findall(r"^```python\n(.*?)^```$", (CHECKOUT / page).read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    (folder / "shards").symlink_to(shards)
    (folder / "photos").symlink_to(CHECKOUT / "examples/photos")
    # Processes of an engine that is already running have another working directory.
    code = re.sub(r'"((?:shards|photos|from-\w+)/)"', lambda found: f'"{folder}/{found[1]}"', "\n".join(blocks))
    exec(compile(code, page, "exec"), {"__name__": page})


def children():
    """Processes that this one has started and that are still running."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rsplit(")", 1)[1].split()[:2]
        except FileNotFoundError:
            continue
        if int(parent) == os.getpid() and state != "Z":
            found.append(int(stat.parent.name))
    return found


def pack(source, output, *options):
    run_node("packages/cli/lib/main.js", "pack", source, output, "--quiet", *options)
    return Path(output)


def small_images(folder, count, classes=("a", "b")):
    rng = np.random.default_rng(7)
    for number in range(count):
        pixels = rng.integers(0, 256, (4, 4, 3), dtype=np.uint8)
        file = folder / classes[number % len(classes)] / f"{number:04}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).resize((32, 32)).save(file)
        file.with_suffix(".json").write_text(json.dumps({"number": number}))


def typescript_batches(location, *options, epochs=1):
    """The batches of the TypeScript loader as reference: a list for each of the options, with TypeScript's names."""
    printed = run_node("python/tests/typescript_batches.mjs", location, json.dumps(options), epochs)
    return [json.loads(line) for line in printed.splitlines()]


def crc_rows(images):
    """crc32 of each image in memory: of [n, h, w, 3] or [n, 3, h, w], of a list of those, or of bytes."""
    return [zlib.crc32(row if isinstance(row, bytes) else np.ascontiguousarray(row)) for row in images]


def seen(batch):
    """The compared properties of a batch with output="numpy" and with_keys=True."""
    images, labels, keys = batch
    return {
        "epoch": batch.epoch,
        "index": batch.batch_index,
        "keys": keys,
        "labels": labels.tolist(),
        "valid": batch.valid.astype(int).tolist(),
        "numbers": batch.indices.tolist(),
        "rows": crc_rows(images),
    }


def of_referee(batches):
    return [{name: value for name, value in batch.items() if name not in ("shape", "state")} for batch in batches]


def lines(batches):
    """One line per valid row, with everything that must be equal in equal runs."""
    return [
        (batch["epoch"], key, label, row)
        for batch in batches
        for key, label, row, valid in zip(batch["keys"], batch["labels"], batch["rows"], batch["valid"])
        if valid
    ]
