"""The classical list of bench/transforms.mjs by PyTorch's DataLoader and torchvision v2.

    python bench/transforms_torchvision.py PHOTOS pillow|tensor WORKERS BATCH

Prints images per second of the second epoch. `tensor` decodes with torchvision.io and transforms uint8 tensors.
"""
import sys
import time

import torch
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.io import ImageReadMode, decode_jpeg, read_file
from torchvision.transforms import v2


def tensor_of(path):
    return decode_jpeg(read_file(path), mode=ImageReadMode.RGB)


def main():
    folder, variant, workers, batch = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    torch.set_num_threads(1)
    steps = [
        v2.Resize(256),
        v2.CenterCrop(224),
        v2.RandomHorizontalFlip(),
        v2.RandomRotation(15),
        v2.GaussianBlur(5),
        *([v2.ToImage()] if variant == 'pillow' else []),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    ]
    loader_of = {} if variant == 'pillow' else {'loader': tensor_of}
    dataset = ImageFolder(folder, v2.Compose(steps), **loader_of)
    loader = DataLoader(dataset, batch, shuffle=True, num_workers=workers, persistent_workers=True)
    for _ in range(2):
        start = time.perf_counter()
        images = sum(len(labels) for _, labels in loader)
        seconds = time.perf_counter() - start
    print(images / seconds)


main()
