"""PyTorch's DataLoader over shardtool.Dataset and over ImageFolder, in turns, with the same Python transforms.

    python bench/dataset_in_dataloader.py SHARDS PHOTOS [--start fork|spawn] [--workers 2] [--batch 64] [--rounds 5]
                                          [--transform timm|crop]

SHARDS are PHOTOS after packing. `timm` is timm's A1 (as in bench/recipes.mjs), `crop` only RandomResizedCrop and a flip.
Both loaders keep their workers, and their epochs take turns: the first of each warms up. Prints the images per second,
the milliseconds of CPU per image of the workers and their readers, and the ratio of the rates, for each round and as
medians.
"""

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

import torch
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import ImageFolder

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python" / "src"))
import shardtool

LINE = "{:.0f} and {:.0f} images/s, {:.3f} times; {:.2f} and {:.2f} ms of CPU, {:.3f} times"


def transform_of(name):
    if name == "crop":
        return transforms.Compose(
            [
                transforms.RandomResizedCrop(224),
                transforms.RandomHorizontalFlip(),
                transforms.ToTensor(),
            ]
        )
    from timm.data.transforms_factory import transforms_imagenet_train

    return transforms_imagenet_train(224, auto_augment="rand-m7-mstd0.5-inc1", interpolation="random")


def processes():
    """The CPU time of all descendants of this process, in seconds by PID. A reader is a child of its worker."""
    tick = os.sysconf("SC_CLK_TCK")
    parents, times = {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            stat = (entry / "stat").read_text().rpartition(") ")[2].split()
        except OSError:
            continue
        parents[int(entry.name)] = int(stat[1])
        times[int(entry.name)] = (int(stat[11]) + int(stat[12])) / tick
    own = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in own} - own:
        own |= more
    return {pid: times[pid] for pid in own - {os.getpid()}}


def measure(loader):
    """Images per second of an epoch, and milliseconds of CPU per image. The workers of the other loader sleep."""
    before = processes()
    start = time.perf_counter()
    images = sum(len(labels) for _, labels in loader)
    seconds = time.perf_counter() - start
    cpu = sum(used - before.get(pid, 0) for pid, used in processes().items())
    return images / seconds, 1000 * cpu / images


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shards")
    parser.add_argument("photos")
    parser.add_argument("--start", default="fork")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--transform", default="timm")
    options = parser.parse_args()
    torch.set_num_threads(1)
    transform = transform_of(options.transform)
    datasets = (
        shardtool.Dataset(options.shards, transform=transform, output="pil"),
        ImageFolder(options.photos, transform),
    )
    loaders = [
        DataLoader(
            dataset,
            options.batch,
            shuffle=True,
            num_workers=options.workers,
            persistent_workers=True,
            multiprocessing_context=options.start,
        )
        for dataset in datasets
    ]
    for loader in loaders:
        measure(loader)
    rounds = []
    for number in range(options.rounds):
        # They alternate in running first.
        order = (0, 1) if number % 2 == 0 else (1, 0)
        measured = {which: measure(loaders[which]) for which in order}
        (own, own_cpu), (other, other_cpu) = measured[0], measured[1]
        rounds.append((own, other, own / other, own_cpu, other_cpu, own_cpu / other_cpu))
        print(LINE.format(*rounds[-1]), flush=True)
    print("medians:", LINE.format(*map(statistics.median, zip(*rounds))))


if __name__ == "__main__":
    main()
