"""A varying number of images per sample, against Pillow."""

import numpy as np
import pytest
import torch
from PIL import Image

import shardtool
from datasets import CHECKOUT

pytestmark = pytest.mark.usefixtures("lent_readers")

PHOTOS = sorted((CHECKOUT / "examples" / "photos").glob("*/*.jpg"))
SIZE = 24
#: Number of images of each sample.
COUNTS = [0, 3, 1, 2, 0, 11, 1]
OPTIONS = {"images": ["img.*"], "transform": [{"name": "Resize", "size": [SIZE, SIZE]}], "decode": "exact"}


def photo_of(sample, image):
    return PHOTOS[(3 * sample + image) % len(PHOTOS)]


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("several") / "shards"
    with shardtool.Writer(folder, primary="txt") as writer:
        for sample, count in enumerate(COUNTS):
            images = {f"img.{image}.jpg": photo_of(sample, image).read_bytes() for image in range(count)}
            writer.add(f"{sample}", txt=f"{sample}", **images)
    return folder


def pillow(sample, image):
    with Image.open(photo_of(sample, image)) as photo:
        return np.asarray(photo.convert("RGB").resize((SIZE, SIZE), Image.BILINEAR))


@pytest.mark.parametrize("output", ["torch", "numpy"])
def test_each_sample_has_its_images_as_pillow_resizes_them(shards, output):
    seen = 0
    options = {**OPTIONS, "batch_size": 3, "with_keys": True, "output": output}
    with shardtool.Loader(shards, **options) as loader:
        for batch in loader:
            assert batch.offsets[0] == 0 and batch.offsets[-1] == len(batch.images)
            assert len(batch.offsets) == len(batch.keys) + 1
            for key, images in zip(batch.keys, batch.image_lists()):
                sample = int(key)
                assert len(images) == COUNTS[sample]
                seen += len(images)
                for number, image in enumerate(images):
                    pixels = image.permute(1, 2, 0).numpy() if output == "torch" else image
                    assert np.abs(pixels.astype(int) - pillow(sample, number)).max() <= 1
    assert seen == sum(COUNTS)


def test_batches_that_are_kept_do_not_change(shards):
    with shardtool.Loader(shards, **OPTIONS, batch_size=2, epochs_per_loop=4, prefetch_batches=2) as loader:
        kept = [(batch.images, batch.images.clone()) for batch in loader]
    assert all(torch.equal(images, copy) for images, copy in kept)


def test_a_resumed_run_has_the_rest(shards):
    options = {**OPTIONS, "batch_size": 2, "with_keys": True}
    with shardtool.Loader(shards, **options) as loader:
        whole = [(batch.keys, batch.offsets.tolist()) for batch in loader]
    with shardtool.Loader(shards, **options) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with shardtool.Loader(shards, **options) as loader:
        loader.load_state_dict(state)
        assert [(batch.keys, batch.offsets.tolist()) for batch in loader] == whole[1:]


def test_methods_for_boxes_say_that_there_are_none(shards):
    with shardtool.Loader(shards, **OPTIONS) as loader:
        batch = next(iter(loader))
    for method in (batch.targets, batch.padded):
        with pytest.raises(ValueError, match="no annotations"):
            method()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"images": "img.*"}, "images must be a list"),
        ({"images": ["pic.*"]}, 'images: no field of .* matches "pic'),
        ({"python_transform": lambda image: image}, "remove python_transform, or images"),
        ({"max_images": 2, "on_bad": "raise"}, "more than the option max_images allows"),
        ({"collate": "list"}, "collate does not work with images"),
    ],
)
def test_errors_name_the_option(shards, options, message):
    with (
        pytest.raises((shardtool.ShardtoolError, TypeError), match=message),
        shardtool.Loader(shards, **{**OPTIONS, **options}) as loader,
    ):
        for _ in loader:
            pass
