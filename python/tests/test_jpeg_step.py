"""The step jpeg, against Pillow's save and load."""

import io

import numpy as np
import pytest
from PIL import Image

import shardtool
from datasets import pack

pytestmark = pytest.mark.usefixtures("lent_readers")

SIZES = [(1, 1), (2, 3), (4, 5), (5, 4), (6, 6), (7, 9), (8, 8), (15, 17), (16, 16), (31, 33), (40, 64), (64, 47)]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Noise, smooth pictures of many sizes, black, white and primary colours, and a checkerboard."""
    folder = tmp_path_factory.mktemp("jpeg")
    (folder / "a").mkdir()
    rng = np.random.default_rng(5)
    pixels = [rng.integers(0, 256, (height, width, 3), dtype=np.uint8) for height, width in SIZES]
    for height, width in SIZES:
        y, x = np.mgrid[:height, :width]
        waves = [127.5 + 127.5 * np.sin(0.21 * x * i + 0.13 * y + i) for i in (1, 2, 3)]
        pixels.append(np.stack(waves, -1).astype(np.uint8))
    for colour in ([0, 0, 0], [255, 255, 255], [255, 0, 0], [0, 255, 0], [0, 0, 255]):
        pixels.append(np.tile(np.array(colour, np.uint8), (9, 18, 1)))
    pixels.append((np.indices((24, 25)).sum(0)[..., None] % 2 * np.array([255, 255, 255])).astype(np.uint8))
    for i, one in enumerate(pixels):
        Image.fromarray(one).save(folder / "a" / f"{i:02}.png")
    return pack(folder, folder.parent / (folder.name + "-shards")), pixels


def compressed(pixels, quality):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=quality)
    return np.array(Image.open(file))


def shown(dataset, quality, epochs=1):
    """The number in the key of each image, and the image."""
    options = {
        "transform": [{"name": "JPEG", "quality": quality}],
        "collate": "list",
        "output": "numpy",
        "with_keys": True,
    }
    with shardtool.Loader(dataset, batch_size=8, **options) as loader:
        for _ in range(epochs):
            for batch in loader:
                yield from ((int(key[-2:]), image) for key, image in zip(batch.keys, batch.images))


@pytest.mark.parametrize("quality", [1, 10, 30, 49, 50, 51, 75, 90, 95, 100])
def test_compressed_images_are_those_of_pillow(pictures, quality):
    dataset, pixels = pictures
    images = dict(shown(dataset, quality))
    assert len(images) == len(pixels)
    for number, image in images.items():
        np.testing.assert_array_equal(image, compressed(pixels[number], quality))


def test_a_range_of_qualities_is_drawn_with_both_ends(pictures):
    dataset, pixels = pictures
    seen = set()
    for number, image in shown(dataset, [20, 24], epochs=8):
        equal = [quality for quality in range(20, 25) if np.array_equal(image, compressed(pixels[number], quality))]
        assert equal
        seen.update(equal if len(equal) == 1 else [])
    assert seen == {20, 21, 22, 23, 24}


def test_a_quality_out_of_range_is_named(pictures):
    with pytest.raises(shardtool.OptionError, match="quality"):
        list(shown(pictures[0], 0))
