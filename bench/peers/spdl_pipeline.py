"""SPDL: a pipeline of threads. FFmpeg decodes the whole JPEG, then crops, resizes and flips it in one filter graph."""

from measure import RATIO, SCALE, SIZE, list_photos, measure, parse_arguments, random_box

from importlib.metadata import version

import random

import spdl.io
import torch
from spdl.pipeline import PipelineBuilder


def decode(photo):
    path, label = photo
    packets = spdl.io.demux_image(path)
    left, top, width, height = random_box(packets.width, packets.height, SCALE, RATIO)
    flip = ",hflip" if random.random() < 0.5 else ""
    # Crops the planes as they are stored. Converting to RGB first would take twice the CPU time.
    graph = f"crop={width}:{height}:{left}:{top},scale={SIZE}:{SIZE}:flags=bilinear{flip},format=pix_fmts=rgb24"
    decoding = spdl.io.decode_config(decoder_options={"threads": "1"})
    return spdl.io.decode_packets(packets, decode_config=decoding, filter_desc=graph), label


def batch_of(samples):
    frames, labels = zip(*samples, strict=True)
    return spdl.io.to_torch(spdl.io.convert_frames(list(frames))), torch.tensor(labels)


def build(arguments):
    photos = list_photos(arguments.photos)

    def epoch():
        pipeline = (
            PipelineBuilder()
            .add_source(random.sample(photos, len(photos)))
            .pipe(decode, concurrency=arguments.workers)
            .aggregate(arguments.batch, drop_last=True)
            .pipe(batch_of)
            .add_sink(2)
            .build(num_threads=arguments.workers)
        )
        with pipeline.auto_stop():
            for images, _ in pipeline:
                yield images

    return epoch


if __name__ == "__main__":
    torch.set_num_threads(1)
    measure(
        "SPDL",
        f"spdl {version('spdl')}",
        build,
        parse_arguments(),
        notes="FFmpeg's own JPEG decoder and bilinear scaler; crops of photos with subsampled colours begin at even pixels",
    )
