"""Hugging Face datasets over Parquet of the same JPEG bytes, decoded by Pillow, batched by DataLoader."""

from measure import RATIO, SCALE, SIZE, list_photos, measure, parse_arguments

import os

import datasets
import PIL
import torch
from torch.utils.data import DataLoader
from torchvision import transforms

datasets.disable_progress_bars()
FILES = 8


def prepare(photos, out):
    """Writes Parquet as for the Hub: with the bytes of the files, and the default codec of `to_parquet`."""
    os.makedirs(out)
    names = sorted({os.path.basename(os.path.dirname(path)) for path, _ in photos})
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=names)})
    for n in range(FILES):
        part = photos[n::FILES]
        images = []
        for path, _ in part:
            with open(path, "rb") as file:
                images.append({"bytes": file.read(), "path": None})
        rows = {"image": images, "label": [label for _, label in part]}
        target = os.path.join(out, f"train-{n:05}-of-{FILES:05}.parquet")
        datasets.Dataset.from_dict(rows, features=features).to_parquet(target)


def build(arguments):
    transform = transforms.Compose(
        [
            transforms.RandomResizedCrop(SIZE, scale=SCALE, ratio=RATIO),
            transforms.RandomHorizontalFlip(),
            transforms.PILToTensor(),
        ]
    )

    def decode(rows):
        return {"image": [transform(image.convert("RGB")) for image in rows["image"]], "label": rows["label"]}

    # datasets caches data next to the files, and not in the user's cache.
    place = arguments.prepared
    photos = datasets.load_dataset(place, split="train", cache_dir=place + ".cache").with_transform(decode)
    loader = DataLoader(
        photos,
        batch_size=arguments.batch,
        num_workers=arguments.workers,
        shuffle=True,
        drop_last=True,
        persistent_workers=True,
    )
    return lambda: (batch["image"] for batch in loader)


if __name__ == "__main__":
    torch.set_num_threads(1)
    arguments = parse_arguments()
    if arguments.prepare:
        prepare(list_photos(arguments.photos), arguments.prepared)
    else:
        measure(
            "datasets, DataLoader, Pillow",
            f"datasets {datasets.__version__}, Pillow {PIL.__version__}",
            build,
            arguments,
        )
