"""Measures how long a GPU waits for images while it trains: torchvision's ResNets in bfloat16, and a loop that only waits for
each batch. The batches are those of shardtool.Loader, those of torch's DataLoader with decode_jpeg and v2 transforms, and one
batch that is already on the GPU, which is the limit.

Arguments: photos, shards, batch size, seconds per contestant, workers. Contestants take turns, three rounds. Prints a table.
CPU seconds are those of all processes.
"""

import statistics
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import torch
import torchvision
from torch.utils.data import DataLoader
from torchvision.datasets import DatasetFolder
from torchvision.io import ImageReadMode, decode_jpeg, read_file
from torchvision.transforms import v2

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python" / "src"))

import shardtool

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
ROUNDS = 3


def of_shardtool(shards, batch_size, workers):
    loader = shardtool.Loader(
        shards,
        batch_size=batch_size,
        transform="train224",
        workers=workers,
        device="cuda",
        dtype="bfloat16",
        mean=MEAN,
        std=STD,
        last_batch="drop",
    )
    while True:
        yield from loader


def of_torch(photos, batch_size, workers):
    transform = v2.Compose(
        [v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip()]
    )

    def read(path):
        return decode_jpeg(read_file(path), mode=ImageReadMode.RGB)

    loader = DataLoader(
        DatasetFolder(photos, read, extensions=(".jpg",), transform=transform),
        batch_size=batch_size,
        shuffle=True,
        num_workers=workers,
        drop_last=True,
        pin_memory=True,
        persistent_workers=True,
        prefetch_factor=4,
    )
    mean, std = (
        torch.tensor(values, device="cuda").view(1, 3, 1, 1) * 255
        for values in (MEAN, STD)
    )
    while True:
        for images, labels in loader:
            images = (
                images.cuda(non_blocking=True).float().sub_(mean).div_(std).bfloat16()
            )
            yield (
                images.contiguous(memory_format=torch.channels_last),
                labels.cuda(non_blocking=True),
            )


def of_memory(batch_size):
    images = torch.randn(batch_size, 3, 224, 224, device="cuda", dtype=torch.bfloat16)
    images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.randint(0, 10, (batch_size,), device="cuda")
    while True:
        yield images, labels


def cpu_seconds():
    """CPU seconds of this process and of all that it started."""
    total = 0.0
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        times = process.cpu_times()
        total += times.user + times.system
    return total


def step_of(name):
    """The step of the loop for a batch."""
    if name == "none":
        return lambda pixels, labels: None
    model = (
        getattr(torchvision.models, name)(num_classes=1000)
        .cuda()
        .to(memory_format=torch.channels_last)
    )
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)

    def step(pixels, labels):
        with torch.autocast("cuda", torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(pixels), labels.long())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return step


def train(name, batches, seconds):
    """Figures of a training loop: images/s, CPU ms per image, and median and 99th percentile of the waits for a batch in ms."""
    step = step_of(name)
    before = torch.cuda.Event()
    before.record()
    waits = []
    start, images, cpu = None, 0, 0.0
    while start is None or time.perf_counter() - start < seconds:
        asked = time.perf_counter()
        pixels, labels = next(batches)
        waits.append(time.perf_counter() - asked)
        images += len(pixels)
        step(pixels, labels)
        # The loop is one step ahead of the GPU, like a loop that logs its loss now and then.
        event = torch.cuda.Event()
        event.record()
        before.synchronize()
        before = event
        if start is None and len(waits) == 20:  # Both the GPU and the loaders are warm.
            torch.cuda.synchronize()
            start, images, waits, cpu = time.perf_counter(), 0, [], cpu_seconds()
    torch.cuda.synchronize()
    spent = time.perf_counter() - start
    return (
        images / spent,
        (cpu_seconds() - cpu) / images * 1000,
        *np.percentile(waits, [50, 99]) * 1000,
    )


def main():
    photos, shards, batch_size, seconds, workers = (
        sys.argv[1],
        sys.argv[2],
        *map(int, sys.argv[3:6]),
    )
    torch.backends.cudnn.benchmark = True
    contestants = {
        "one batch on the GPU": of_memory(batch_size),
        "shardtool": of_shardtool(shards, batch_size, workers),
        "DataLoader": of_torch(photos, batch_size, workers),
    }
    print(
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {workers} workers, batches of {batch_size}"
    )
    columns = [
        "model",
        "batches from",
        "images/s",
        "of the limit",
        "CPU ms an image",
        "wait p50, ms",
        "wait p99, ms",
    ]
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)
    for model in ("none", "resnet18", "resnet50"):
        found = {
            name: []
            for name in contestants
            if model != "none" or name != "one batch on the GPU"
        }
        for _ in range(ROUNDS):
            for name, runs in found.items():
                runs.append(train(model, contestants[name], seconds))
        limit = statistics.median(
            rate for rate, *_ in found.get("one batch on the GPU", found["shardtool"])
        )
        for name, runs in found.items():
            rate, cpu, middle, late = (
                statistics.median(values) for values in zip(*runs)
            )
            share = f"{rate / limit:.2f}" if model != "none" else "-"
            print(
                f"| {model} | {name} | {rate:.0f} | {share} | {cpu:.2f} | {middle:.1f} | {late:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
