"""PyTorch's DataLoader with torchvision.io.decode_jpeg and the v2 transforms: the fastest decoder of torchvision itself."""

from measure import RATIO, SCALE, SIZE, list_photos, measure, parse_arguments

import torch
import torchvision
from torch.utils.data import DataLoader, Dataset
from torchvision.io import ImageReadMode, decode_jpeg, read_file
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
        return self.transform(decode_jpeg(read_file(path), mode=ImageReadMode.RGB)), label


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
        "PyTorch DataLoader, decode_jpeg, v2 transforms",
        f"torch {torch.__version__}, torchvision {torchvision.__version__}",
        build,
        parse_arguments(),
    )
