"""PyTorch's DataLoader over torchvision's ImageFolder, decoded by Pillow, as in the PyTorch examples."""

from measure import RATIO, SCALE, SIZE, measure, parse_arguments

import PIL
import torch
import torchvision
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import ImageFolder


def build(arguments):
    dataset = ImageFolder(
        arguments.photos,
        transforms.Compose(
            [
                transforms.RandomResizedCrop(SIZE, scale=SCALE, ratio=RATIO),
                transforms.RandomHorizontalFlip(),
                transforms.PILToTensor(),
            ]
        ),
    )
    loader = DataLoader(
        dataset,
        batch_size=arguments.batch,
        shuffle=True,
        num_workers=arguments.workers,
        drop_last=True,
        persistent_workers=True,
    )
    return lambda: (images for images, _ in loader)


if __name__ == "__main__":
    torch.set_num_threads(1)
    measure(
        "PyTorch DataLoader, ImageFolder, Pillow",
        f"torch {torch.__version__}, torchvision {torchvision.__version__}, Pillow {PIL.__version__}",
        build,
        parse_arguments(),
    )
