"""PyTorch's DataLoader with the image decoder of torchcodec, which replaces torchvision's, and the v2 transforms."""

from measure import RATIO, SCALE, SIZE, list_photos, measure, parse_arguments

from importlib.metadata import version

import torch
from torch.utils.data import DataLoader, Dataset
from torchcodec.decoders import decode_jpeg
from torchvision.transforms import v2


class Photos(Dataset):
    def __init__(self, folder):
        self.photos = list_photos(folder)
        self.transform = v2.Compose(
            [v2.RandomResizedCrop(SIZE, scale=SCALE, ratio=RATIO, antialias=True), v2.RandomHorizontalFlip()]
        )

    def __len__(self):
        return len(self.photos)

    def __getitem__(self, number):
        path, label = self.photos[number]
        return self.transform(decode_jpeg(path)), label


def build(arguments):
    loader = DataLoader(
        Photos(arguments.photos),
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
        "PyTorch DataLoader, torchcodec, v2 transforms",
        f"torch {torch.__version__}, torchcodec {version('torchcodec')}",
        build,
        parse_arguments(),
        notes="worker processes: this release of torch has no worker threads",
    )
