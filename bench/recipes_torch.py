"""The recipes of bench/recipes.mjs by PyTorch's DataLoader and the libraries that published them.

    python bench/recipes_torch.py PHOTOS NAME WORKERS BATCH pillow|tensor

Prints images per second of the second epoch. `tensor` decodes with torchvision.io and transforms uint8 tensors.
"""

import sys
import time

import torch
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.io import ImageReadMode, decode_jpeg, read_file
from torchvision.transforms import v2

BICUBIC = v2.InterpolationMode.BICUBIC


def floats(normalized):
    steps = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
    return (
        [*steps, v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]
        if normalized
        else steps
    )


def tensor_of(path):
    return decode_jpeg(read_file(path), mode=ImageReadMode.RGB)


class Views:
    """Several transforms of one image."""

    def __init__(self, *transforms):
        self.transforms = transforms

    def __call__(self, image):
        return [transform(image) for transform in self.transforms]


def timm_train(**options):
    from timm.data.transforms_factory import transforms_imagenet_train

    return transforms_imagenet_train(224, **options)


def open_clip_train():
    import open_clip

    return open_clip.image_transform(224, is_train=True)


def trivial_augment():
    return v2.Compose(
        [
            v2.RandomResizedCrop(176, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.TrivialAugmentWide(interpolation=v2.InterpolationMode.BILINEAR),
            *floats(normalized=True),
            v2.RandomErasing(p=0.1),
        ]
    )


def simclr():
    jitter = v2.ColorJitter(0.8, 0.8, 0.8, 0.2)
    view = v2.Compose(
        [
            v2.RandomResizedCrop(224, interpolation=BICUBIC, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.RandomApply([jitter], p=0.8),
            v2.RandomGrayscale(0.2),
            v2.RandomApply([v2.GaussianBlur(23, (0.1, 2.0))], p=0.5),
            *floats(normalized=False),
        ]
    )
    return Views(view, view)


def dino():
    """DataAugmentationDINO of DINOv2: blurred with probability 0, 0.9 and 0.5."""
    jitter = v2.ColorJitter(0.4, 0.4, 0.2, 0.1)

    def view(size, scale, *more):
        crop = v2.RandomResizedCrop(size, scale, interpolation=BICUBIC, antialias=True)
        colors = [v2.RandomApply([jitter], p=0.8), v2.RandomGrayscale(0.2)]
        return v2.Compose(
            [crop, v2.RandomHorizontalFlip(), *colors, *more, *floats(normalized=True)]
        )

    blur = v2.GaussianBlur(9, (0.1, 2.0))
    first = view(224, (0.32, 1))
    second = view(
        224, (0.32, 1), v2.RandomApply([blur], p=0.9), v2.RandomSolarize(128, 0.2)
    )
    local = view(96, (0.05, 0.32), v2.RandomApply([blur], p=0.5))
    return Views(first, second, *[local] * 8)


RECIPES = {
    "timm A1": lambda: timm_train(
        auto_augment="rand-m7-mstd0.5-inc1", interpolation="random"
    ),
    "DeiT III": lambda: timm_train(
        auto_augment="3a",
        force_color_jitter=True,
        color_jitter=0.3,
        interpolation="bicubic",
    ),
    "open_clip": open_clip_train,
    "TrivialAugmentWide": trivial_augment,
    "SimCLR, 2 views": simclr,
    "DINOv2, 2 + 8 views": dino,
}


def dataset_of(folder, backend, transform):
    return ImageFolder(
        folder, transform, **({"loader": tensor_of} if backend == "tensor" else {})
    )


def main():
    folder, name, workers, batch, backend = (
        sys.argv[1],
        sys.argv[2],
        int(sys.argv[3]),
        int(sys.argv[4]),
        sys.argv[5],
    )
    torch.set_num_threads(1)
    dataset = dataset_of(folder, backend, RECIPES[name]())
    loader = DataLoader(
        dataset, batch, shuffle=True, num_workers=workers, persistent_workers=True
    )
    for _ in range(2):
        start = time.perf_counter()
        images = sum(len(labels) for _, labels in loader)
        seconds = time.perf_counter() - start
    print(images / seconds)


main()
