"""Ray Data over the files, decoded by Pillow in its worker processes, as batches of torch tensors."""

from measure import RATIO, SCALE, SIZE, list_photos, measure, parse_arguments

import logging
import os

os.environ.setdefault("RAY_DATA_DISABLE_PROGRESS_BARS", "1")

import numpy as np
import PIL.Image
import ray
import torch
from torchvision import transforms


TRANSFORM = transforms.Compose(
    [transforms.RandomResizedCrop(SIZE, scale=SCALE, ratio=RATIO), transforms.RandomHorizontalFlip()]
)


def decode(rows):
    images = [np.asarray(TRANSFORM(PIL.Image.open(path).convert("RGB"))) for path in rows["path"]]
    return {"image": np.stack(images), "label": rows["label"]}


def build(arguments):
    # One CPU of Ray is one running process.
    ray.init(num_cpus=arguments.workers, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    photos = list_photos(arguments.photos)

    def epoch():
        rows = np.random.permutation(len(photos))
        items = [{"path": photos[row][0], "label": photos[row][1]} for row in rows]
        dataset = ray.data.from_items(items, override_num_blocks=8 * arguments.workers).map_batches(
            decode, batch_size=64, num_cpus=1
        )
        for batch in dataset.iter_torch_batches(batch_size=arguments.batch, drop_last=True, prefetch_batches=2):
            yield batch["image"]

    return epoch


if __name__ == "__main__":
    torch.set_num_threads(1)
    measure(
        "Ray Data, iter_torch_batches, Pillow",
        f"ray {ray.__version__}, Pillow {PIL.__version__}",
        build,
        parse_arguments(),
        notes="paths are shuffled before each epoch",
    )
