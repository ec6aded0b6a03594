"""datago: threads in Rust decode the files and resize them; Python flips them and makes batches."""

from measure import SIZE, list_photos, measure, parse_arguments

import json
import os
import random
from importlib.metadata import version

import datago
import numpy as np


def build(arguments):
    os.environ["DATAGO_MAX_TASKS"] = str(arguments.workers)
    labels = {os.path.realpath(path): label for path, label in list_photos(arguments.photos)}
    batches = len(labels) // arguments.batch
    config = {
        "source_type": "file",
        "source_config": {"root_path": arguments.photos, "random_sampling": True, "rank": 0, "world_size": 1},
        # One square bucket: datago crops the largest square in the middle of the photo.
        "image_config": {
            "crop_and_resize": True,
            "default_image_size": SIZE,
            "downsampling_ratio": 32,
            "min_aspect_ratio": 1.0,
            "max_aspect_ratio": 1.0,
            "pre_encode_images": False,
        },
        "limit": len(labels),
        "samples_buffer_size": 2 * arguments.batch,
    }

    def epoch():
        client = datago.DatagoClient(json.dumps(config))
        client.start()
        for _ in range(batches):
            images = np.empty((arguments.batch, SIZE, SIZE, 3), np.uint8)
            numbers = np.empty(arguments.batch, np.int64)
            for row in range(arguments.batch):
                sample = client.get_sample()
                if sample is None:
                    raise RuntimeError("datago ended before the epoch did")
                pixels = sample.image.to_numpy_array()
                images[row] = pixels[:, ::-1] if random.random() < 0.5 else pixels
                numbers[row] = labels[os.path.realpath(json.loads(sample.id))]
            yield images
        client.stop()

    return epoch


if __name__ == "__main__":
    measure(
        "datago, square crop of the middle",
        f"datago {version('datago')}",
        build,
        parse_arguments(),
        notes="it has no random crop: the largest square in the middle",
    )
