"""MosaicML Streaming over MDS shards of the same JPEG bytes, decoded by Pillow."""

from measure import RATIO, SCALE, SIZE, list_photos, measure, parse_arguments

import PIL
import streaming
import torch
from streaming import MDSWriter, StreamingDataset
from streaming.base.util import clean_stale_shared_memory
from torch.utils.data import DataLoader
from torchvision import transforms


class Photos(StreamingDataset):
    def __init__(self, folder, batch_size):
        super().__init__(local=folder, shuffle=True, batch_size=batch_size)
        self.transform = transforms.Compose(
            [
                transforms.RandomResizedCrop(SIZE, scale=SCALE, ratio=RATIO),
                transforms.RandomHorizontalFlip(),
                transforms.PILToTensor(),
            ]
        )

    def __getitem__(self, number):
        sample = super().__getitem__(number)
        return self.transform(sample["image"].convert("RGB")), sample["label"]


def prepare(photos, out):
    """Writes the files unchanged. The column is stored as `bytes` and read as `jpeg`, which decodes it with Pillow."""
    with MDSWriter(out=out, columns={"image": "jpeg", "label": "int"}) as writer:
        for path, label in photos:
            writer.write({"image": PIL.Image.open(path), "label": label})


def build(arguments):
    clean_stale_shared_memory()  # named memory of a run that was ended from outside
    loader = DataLoader(
        Photos(arguments.prepared, arguments.batch),
        batch_size=arguments.batch,
        num_workers=arguments.workers,
        drop_last=True,
        persistent_workers=True,
    )
    return lambda: (images for images, _ in loader)


if __name__ == "__main__":
    torch.set_num_threads(1)
    arguments = parse_arguments()
    if arguments.prepare:
        prepare(list_photos(arguments.photos), arguments.prepared)
    else:
        measure(
            "MosaicML Streaming, Pillow",
            f"mosaicml-streaming {streaming.__version__}, Pillow {PIL.__version__}",
            build,
            arguments,
        )
