"""Measures torch on the same GPU, for run.mjs: GB/s from pageable and pinned memory to the device, the share of a batch's
copy and conversion that overlaps with a kernel of 30 ms, and images/s of its DataLoader with pin_memory and non_blocking.

Arguments: photos, batch size, device, seconds, batches. Prints one line of JSON; a part that fails is named in it.
"""

import json
import os
import statistics
import sys
import time

import torch

ROUNDS, REPEATS = 20, 5
KERNEL_MS = 30
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Normalize:
    """uint8 [n, 3, h, w] on the device as normalised float16."""

    def __init__(self, device):
        self.mean, self.std = (torch.tensor(values, device=device).view(1, 3, 1, 1) for values in (MEAN, STD))

    def __call__(self, images):
        return images.float().div_(255).sub_(self.mean).div_(self.std).half()


def copies(device, batch_size):
    host = torch.ones(batch_size, 224, 224, 3, dtype=torch.uint8)
    target = torch.empty_like(host, device=device)

    def rate(source):
        target.copy_(source, non_blocking=True)
        torch.cuda.synchronize()
        rates = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            for _ in range(ROUNDS):
                target.copy_(source, non_blocking=True)
            torch.cuda.synchronize()
            rates.append(ROUNDS * host.numel() / (time.perf_counter() - start) / 1e9)
        return statistics.median(rates)

    return {"pageable": rate(host), "pinned": rate(host.pin_memory())}


def overlap(device, batch_size, batches):
    """Copies and converts on a side stream, two batches ahead of the kernel. Times are measured by the device."""
    host = torch.ones(batch_size, 3, 224, 224, dtype=torch.uint8).pin_memory()
    side, normalize = torch.cuda.Stream(), Normalize(device)
    current = torch.cuda.current_stream()

    def send():
        with torch.cuda.stream(side):
            values = normalize(host.to(device, non_blocking=True))
            return values, side.record_event()

    def elapsed(work):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        work(begin)
        end.record(current)
        torch.cuda.synchronize()
        return begin.elapsed_time(end)

    def consume(work):
        def run(begin):
            queue = [send() for _ in range(3)]
            for batch in range(batches):
                values, ready = queue.pop(0)
                current.wait_event(ready)
                values.record_stream(current)
                if batch == 0:
                    begin.record(current)
                work()
                if batch + 3 < batches:
                    # As in a loader with three slots, the next batch uses the memory of this one.
                    done = current.record_event()
                    side.wait_event(done)
                    queue.append(send())

        return elapsed(run)

    def kernels(begin):
        begin.record(current)
        for _ in range(batches):
            torch.cuda._sleep(cycles)

    cycles = 10**7

    def sleep_once(begin):
        begin.record(current)
        torch.cuda._sleep(cycles)

    elapsed(sleep_once)
    cycles = int(cycles * KERNEL_MS / elapsed(sleep_once))
    consume(lambda: None)
    alone, sleeping = consume(lambda: None), elapsed(kernels)
    together = consume(lambda: torch.cuda._sleep(cycles))
    share = 1 - max(0.0, together - sleeping) / alone
    return {"share": share, "batchMs": alone / (batches - 1), "kernelMs": sleeping / batches}


def epochs(device, batch_size, photos, seconds):
    from torchvision import datasets, transforms

    steps = [transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.PILToTensor()]
    loader = torch.utils.data.DataLoader(
        datasets.ImageFolder(photos, transforms.Compose(steps)),
        batch_size,
        shuffle=True,
        num_workers=len(os.sched_getaffinity(0)),
        pin_memory=True,
        persistent_workers=True,
    )
    normalize = Normalize(device)
    epoch, images, spent = 0, 0, 0.0
    while epoch < 4 or spent < seconds:
        start, rows = time.perf_counter(), 0
        for batch, _ in loader:
            rows += len(normalize(batch.to(device, non_blocking=True)))
        torch.cuda.synchronize()
        if epoch > 0:
            images, spent = images + rows, spent + time.perf_counter() - start
        epoch += 1
    return {"imagesPerSecond": images / spent}


def main(photos, batch_size, device, seconds, batches):
    if not torch.cuda.is_available():
        sys.exit(f"torch {torch.__version__} has no CUDA here, so it is not measured.")
    torch.cuda.set_device(device)
    report = {"version": torch.__version__, "failures": []}
    parts = {
        "copies": lambda: copies(device, batch_size),
        "overlap": lambda: overlap(device, batch_size, batches),
        "epochs": lambda: epochs(device, batch_size, photos, seconds),
    }
    for name, measure in parts.items():
        print(f"torch, {name} ...", file=sys.stderr)
        try:
            report.update(measure())
        except Exception as error:  # The other parts still run.
            report["failures"].append(f"{name}: {type(error).__name__}: {error}")
    print(json.dumps(report))


if __name__ == "__main__":
    photos, batch_size, device, seconds, batches = sys.argv[1:]
    main(photos, int(batch_size), device, float(seconds), int(batches))
