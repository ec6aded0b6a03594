"""LitData: `--variant optimized` over its own chunks of the same JPEG bytes, `--variant raw` over the files."""

from measure import RATIO, SCALE, SIZE, list_photos, measure, parse_arguments

import os
from importlib.metadata import version

import litdata
import PIL.Image
import torch
from litdata import StreamingDataLoader, StreamingDataset, StreamingRawDataset
from torch.utils.data import DataLoader
from torchvision.io import ImageReadMode, decode_jpeg
from torchvision.transforms import v2

CHUNK_BYTES = 2**26


def transform():
    return v2.Compose(
        [v2.RandomResizedCrop(SIZE, scale=SCALE, ratio=RATIO, antialias=True), v2.RandomHorizontalFlip()]
    )


class Chunks(StreamingDataset):
    """Items as stored by `optimize`. Its serializer has decoded the image with torchvision."""

    def __init__(self, folder):
        super().__init__(input_dir=folder, shuffle=True, drop_last=True)
        self.step = transform()

    def __getitem__(self, number):
        sample = super().__getitem__(number)
        return self.step(sample["image"]), sample["label"]


class Files(StreamingRawDataset):
    """Items are the bytes of files. Labels are the numbers of their folders."""

    def __init__(self, folder, cache):
        classes = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
        self.number_of = {name: number for number, name in enumerate(classes)}
        super().__init__(input_dir=folder, cache_dir=cache, recompute_index=True)
        self.step = transform()

    def __getstate__(self):
        return super().__getstate__() | {"number_of": self.number_of, "step": self.step}

    def sample(self, number, data):
        jpeg = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        label = self.number_of[os.path.basename(os.path.dirname(self.items[number].path))]
        return self.step(decode_jpeg(jpeg, mode=ImageReadMode.RGB)), label

    def __getitem__(self, number):
        return self.sample(number, super().__getitem__(number))

    def __getitems__(self, numbers):
        return [self.sample(number, data) for number, data in zip(numbers, super().__getitems__(numbers), strict=True)]


def stored_sample(photo):
    path, label = photo
    return {"image": PIL.Image.open(path), "label": label}


def prepare(photos, out):
    litdata.optimize(
        fn=stored_sample, inputs=photos, output_dir=out, num_workers=1, chunk_bytes=CHUNK_BYTES, verbose=False
    )


def build(arguments):
    options = {
        "batch_size": arguments.batch,
        "num_workers": arguments.workers,
        "drop_last": True,
        "persistent_workers": True,
    }
    if arguments.variant == "raw":
        cache = arguments.photos + ".litdata"
        loader = DataLoader(Files(arguments.photos, cache), shuffle=True, **options)
    else:
        loader = StreamingDataLoader(Chunks(arguments.prepared), shuffle=True, **options)
    return lambda: (images for images, _ in loader)


if __name__ == "__main__":
    torch.set_num_threads(1)
    arguments = parse_arguments()
    if arguments.prepare:
        prepare(list_photos(arguments.photos), arguments.prepared)
    else:
        kind = "StreamingRawDataset" if arguments.variant == "raw" else "StreamingDataset"
        measure(
            f"LitData {kind}, decode_jpeg, v2 transforms",
            f"litdata {version('litdata')}",
            build,
            arguments,
        )
