"""NVIDIA DALI on the CPU: a fused region decode of the files, resize and flip, in DALI's own thread pool."""

from measure import RATIO, SCALE, SIZE, list_photos, measure, parse_arguments

import numpy
import nvidia.dali
from nvidia.dali import fn, types
from nvidia.dali.pipeline import pipeline_def

SHUFFLE_BUFFER = 1000


@pipeline_def
def training_batches(photos):
    encoded, labels = fn.readers.file(
        files=[path for path, _ in photos],
        labels=[label for _, label in photos],
        random_shuffle=True,
        initial_fill=SHUFFLE_BUFFER,
        name="reader",
    )
    images = fn.decoders.image_random_crop(
        encoded, device="cpu", output_type=types.RGB, random_area=SCALE, random_aspect_ratio=RATIO
    )
    images = fn.resize(images, size=(SIZE, SIZE), interp_type=types.INTERP_TRIANGULAR)
    return fn.flip(images, horizontal=fn.random.coin_flip(probability=0.5)), labels


def build(arguments):
    photos = list_photos(arguments.photos)
    pipeline = training_batches(
        photos, batch_size=arguments.batch, num_threads=arguments.workers, device_id=None, prefetch_queue_depth=2
    )
    pipeline.build()

    def epoch():
        """DALI's reader repeats without end, so an epoch is as many whole batches as the photos fill."""
        for _ in range(len(photos) // arguments.batch):
            images, _ = pipeline.run()
            yield numpy.asarray(images.as_tensor())

    return epoch


if __name__ == "__main__":
    measure(
        "NVIDIA DALI, CPU",
        f"nvidia-dali {nvidia.dali.__version__}",
        build,
        parse_arguments(),
        notes=f"shuffle buffer of {SHUFFLE_BUFFER}; libjpeg-turbo of its own",
    )
