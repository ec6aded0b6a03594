"""Grain over the files, decoded by Pillow, in worker processes."""

from measure import RATIO, SCALE, SIZE, list_photos, measure, parse_arguments, random_box

import itertools
from importlib.metadata import version

import grain
import numpy as np
import PIL.Image


def decode(photo, generator):
    path, label = photo
    with PIL.Image.open(path) as image:
        left, top, width, height = random_box(*image.size, SCALE, RATIO, generator.random)
        box = (left, top, left + width, top + height)
        pixels = np.asarray(image.convert("RGB").crop(box).resize((SIZE, SIZE), PIL.Image.Resampling.BILINEAR))
    if generator.random() < 0.5:
        pixels = pixels[:, ::-1]
    return {"image": np.ascontiguousarray(pixels), "label": label}


def build(arguments):
    photos = list_photos(arguments.photos)
    batches = len(photos) // arguments.batch
    dataset = (
        grain.MapDataset.source(photos)
        .seed(0)
        .shuffle()
        .random_map(decode)
        .batch(arguments.batch, drop_remainder=True)
        .repeat()
        .to_iter_dataset(grain.ReadOptions(num_threads=1, prefetch_buffer_size=2))
        .mp_prefetch(grain.MultiprocessingOptions(num_workers=arguments.workers, per_worker_buffer_size=2))
    )
    endless = iter(dataset)
    return lambda: (batch["image"] for batch in itertools.islice(endless, batches))


if __name__ == "__main__":
    measure(
        "Grain, Pillow",
        f"grain {version('grain')}, Pillow {PIL.__version__}",
        build,
        parse_arguments(),
        notes="an iterator without end: no wait between epochs; every epoch has the order of its own seed",
    )
