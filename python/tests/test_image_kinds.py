"""Every kind and variant of image that is packed is decoded to the same pixels as with Pillow."""

import hashlib
import json
import shutil

import numpy as np
import pytest

import shardtool
from datasets import CHECKOUT, pack

pytestmark = pytest.mark.usefixtures("lent_readers")

FIXTURES = CHECKOUT / "test" / "fixtures" / "pillow"


def test_every_kind_of_image_has_the_pixels_of_pillow(tmp_path):
    expected = {}
    (tmp_path / "images").mkdir()
    for name, images in json.loads((FIXTURES / "expected.json").read_text()).items():
        # Pillow rotates a TIFF when it opens it.
        if name != "xmp-6.tif":
            key = name.replace(".", "_")
            expected[key] = images["stored"]
            shutil.copy(FIXTURES / name, tmp_path / "images" / (key + (FIXTURES / name).suffix))
    shards = pack(tmp_path / "images", tmp_path / "shards")
    options = {"batch_size": 16, "collate": "list", "with_keys": True, "output": "numpy", "workers": 1}
    found = {}
    with shardtool.Loader(shards, **options) as loader:
        for batch in loader:
            for key, image in zip(batch.keys, batch.images):
                height, width, _ = image.shape
                digest = hashlib.sha256(np.ascontiguousarray(image).tobytes()).hexdigest()
                found[key] = {"width": width, "height": height, "sha256": digest}
    assert found == expected


def test_a_writer_takes_bmp_and_ppm(tmp_path):
    with shardtool.Writer(tmp_path / "out") as writer:
        writer.add("a", (FIXTURES / "24.bmp").read_bytes())
        writer.add("b", (FIXTURES / "raw.ppm").read_bytes())
    dataset = shardtool.Dataset(tmp_path / "out", output="numpy")
    assert [sample.image.shape for sample in dataset] == [(11, 17, 3)] * 2
