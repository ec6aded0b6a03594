"""What torch does on the same GPU, for bench/gpu.mjs: host to device GB/s, the share of copy time that hides behind a 30 ms
kernel, and images/s of its DataLoader with pin_memory and non_blocking. Arguments: photos, batch size, device."""

import os
import sys
import time

import torch

if not torch.cuda.is_available():
    sys.exit("torch has no CUDA here: it is not measured.")
photos, batch_size, device = sys.argv[1], int(sys.argv[2]), sys.argv[3]
ROUNDS = 20


def seconds(work):
    work()
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


host = torch.ones(batch_size, 224, 224, 3, dtype=torch.uint8)
for name, source in (("pageable", host), ("pinned", host.pin_memory())):
    took = seconds(lambda source=source: [source.to(device, non_blocking=True) for _ in range(ROUNDS)])
    print(f"torch {torch.__version__}, host to device, {name}: {ROUNDS * host.numel() / took / 1e9:.2f} GB/s")

side = torch.cuda.Stream()
pinned = host.pin_memory()
cycles = int(0.030 * 10**7 / seconds(lambda: torch.cuda._sleep(10**7)))


def copy():
    with torch.cuda.stream(side):
        pinned.to(device, non_blocking=True)


def both():
    torch.cuda._sleep(cycles)
    copy()


alone, kernel, together = seconds(copy), seconds(lambda: torch.cuda._sleep(cycles)), seconds(both)
print(f"share of copy time hidden behind a kernel of {kernel * 1000:.0f} ms: {1 - max(0.0, together - kernel) / alone:.2f}")

from torchvision import datasets, transforms

steps = [transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.PILToTensor()]
loader = torch.utils.data.DataLoader(
    datasets.ImageFolder(photos, transforms.Compose(steps)),
    batch_size,
    shuffle=True,
    num_workers=os.cpu_count(),
    pin_memory=True,
    persistent_workers=True,
)
mean = torch.tensor([0.485, 0.456, 0.406], device=device).view(1, 3, 1, 1)
std = torch.tensor([0.229, 0.224, 0.225], device=device).view(1, 3, 1, 1)
for epoch in range(3):
    start, images = time.perf_counter(), 0
    for batch, _ in loader:
        values = batch.to(device, non_blocking=True).float().div_(255).sub_(mean).div_(std).half()
        images += len(values)
    torch.cuda.synchronize()
    if epoch > 0:
        print(f"torch DataLoader to float16 on the GPU: {images / (time.perf_counter() - start):.0f} images/s")
