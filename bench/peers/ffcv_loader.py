"""FFCV: `--variant jpg` over the same JPEG bytes, `--variant raw` over pixels resized to 256 beforehand."""

from measure import RATIO, SCALE, SIZE, list_photos, measure, parse_arguments

from importlib.metadata import version

import numpy as np
import torch
from ffcv.fields import IntField, RGBImageField
from ffcv.fields.decoders import IntDecoder, RandomResizedCropRGBImageDecoder
from ffcv.fields.rgb_image import IMAGE_MODES
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import RandomHorizontalFlip, ToTensor
from ffcv.writer import DatasetWriter
from PIL import Image

RAW_LONG_SIDE = 256


class StoredJpegField(RGBImageField):
    """FFCV's own `jpg` mode would encode the pixels again. This field stores the file, so that all read the same bytes."""

    def encode(self, destination, image, malloc):
        destination["mode"] = IMAGE_MODES["jpg"]
        destination["width"], destination["height"] = image.size
        with open(image.filename, "rb") as file:
            jpeg = np.frombuffer(file.read(), dtype="<u1")
        destination["data_ptr"], storage = malloc(jpeg.nbytes)
        storage[:] = jpeg


class Photos:
    def __init__(self, photos, decoded):
        self.photos = photos
        self.decoded = decoded

    def __len__(self):
        return len(self.photos)

    def __getitem__(self, number):
        path, label = self.photos[number]
        image = Image.open(path)
        return (image.convert("RGB") if self.decoded else image), label


def prepare(photos, out, variant):
    raw = variant == "raw"
    image = RGBImageField(write_mode="raw", max_resolution=RAW_LONG_SIDE) if raw else StoredJpegField()
    writer = DatasetWriter(out, {"image": image, "label": IntField()}, num_workers=1)
    writer.from_indexed_dataset(Photos(photos, decoded=raw))


def build(arguments):
    loader = Loader(
        arguments.prepared,
        batch_size=arguments.batch,
        num_workers=arguments.workers,
        order=OrderOption.RANDOM,
        os_cache=True,
        drop_last=True,
        pipelines={
            "image": [
                RandomResizedCropRGBImageDecoder((SIZE, SIZE), scale=SCALE, ratio=RATIO),
                RandomHorizontalFlip(),
                ToTensor(),
            ],
            "label": [IntDecoder(), ToTensor()],
        },
        custom_fields={"image": RGBImageField},
    )
    return lambda: (images for images, _ in loader)


if __name__ == "__main__":
    torch.set_num_threads(1)
    arguments = parse_arguments()
    if arguments.prepare:
        prepare(list_photos(arguments.photos), arguments.prepared, arguments.variant)
    else:
        raw = arguments.variant == "raw"
        measure(
            f"FFCV, raw, {RAW_LONG_SIDE} pixels" if raw else "FFCV, jpg",
            f"ffcv {version('ffcv')}",
            build,
            arguments,
            notes="no JPEG is decoded: pixels stored beforehand" if raw else "DCT and upsampling in its fast, less exact modes",
        )
