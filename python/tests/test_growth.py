"""Neither process needs more memory over time."""

import contextlib
import os
from collections import Counter
from pathlib import Path

import pytest

import shardtool


def memory_kib(pid):
    """The resident memory of the process: private and shared."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def open_files(pid):
    paths = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        # The process may close a file that was listed.
        with contextlib.suppress(FileNotFoundError):
            paths.append(os.readlink(link))
    return paths


@pytest.mark.parametrize("count", [3_000, pytest.param(20_000, marks=pytest.mark.long)])
def test_thousands_of_batches_take_no_more_memory_or_descriptors_than_the_first_thousand(small, count):
    # An image of each batch that is kept would be 6 MB in Python; all of them 60 in the reader.
    with shardtool.Loader(small, batch_size=10, transform=[], with_keys=True, fields=["json"]) as loader:
        seen = 0
        marks = []
        while seen < count:
            for images, labels, keys in loader:
                assert len(images) == len(labels) == len(keys) == 10
                seen += 1
                if seen in (1_000, count):
                    pids = os.getpid(), loader._reader.pid
                    marks.append(([memory_kib(pid) for pid in pids], [descriptors(pid) for pid in pids]))
    (memory_before, files_before), (memory_after, files_after) = marks
    assert files_after == files_before
    # Python's own memory is constant; V8 collects its garbage at any time.
    assert memory_after[0] - memory_before[0] < 2 * 1024
    assert memory_after[1] - memory_before[1] < 48 * 1024


def test_loops_that_are_left_early_leave_nothing_open(small):
    # A second worker might still be starting, and have its script open, when the first batch is delivered.
    with shardtool.Loader(small, batch_size=10, output="numpy", workers=1) as loader:
        counts = []
        for _ in range(6):
            next(iter(loader))
            opened = open_files(loader._reader.pid)
            shards = Counter(path for path in opened if path.endswith(".tar"))
            # The main thread and the worker open a shard once each, when they first read from it.
            assert max(shards.values()) <= 2
            counts.append((descriptors(os.getpid()), len(opened) - sum(shards.values())))
    assert len(set(counts[2:])) == 1


def test_loaders_that_are_closed_leave_nothing_open(small):
    counts = []
    for _ in range(3):
        with shardtool.Loader(small, batch_size=10, output="numpy") as loader:
            next(iter(loader))
        counts.append(descriptors(os.getpid()))
    assert len(set(counts)) == 1
