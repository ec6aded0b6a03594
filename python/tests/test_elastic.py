"""The step elasticTransform, against torchvision with the same random field."""

import math

import numpy as np
import pytest
import torch
from philox import Draws, philox
from torchvision.transforms import functional

import shardtool
from datasets import CHECKOUT, pack

pytestmark = pytest.mark.usefixtures("lent_readers")
SIZE = (48, 70)


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    return pack(CHECKOUT / "examples" / "photos" / "cat", tmp_path_factory.mktemp("elastic") / "shards")


def displacement(key, alpha, sigma):
    """The displacement of ElasticTransform for the uniform numbers that this key draws: [1, h, w, 2]."""
    height, width = SIZE
    count = 2 * height * width
    words = [word for counter in range(-(-count // 4)) for word in philox((counter, 0, 0, 0), key)]
    fields = torch.tensor(words[:count], dtype=torch.float64).reshape(2, 1, 1, height, width) / 2**31 - 1
    moved = []
    for field, side in zip(fields, SIZE):
        kernel = int(8 * sigma + 1)
        kernel += 1 - kernel % 2
        smooth = functional.gaussian_blur(field, [kernel, kernel], [sigma, sigma]) if sigma > 0 else field
        moved.append(smooth * alpha / side)
    return torch.cat(moved, 1).permute(0, 2, 3, 1)


@pytest.mark.parametrize(
    ("alpha", "sigma", "interpolation", "fill"),
    [(50, 5, "bilinear", 0), (300, 5, "bilinear", [9, 200, 30]), (20, 1.3, "nearest", 0), (4, 0, "bilinear", 0)],
)
def test_an_elastic_step_is_that_of_torchvision(shards, alpha, sigma, interpolation, fill):
    resize = {"name": "Resize", "size": SIZE}
    step = {"name": "ElasticTransform", "alpha": alpha, "sigma": sigma, "interpolation": interpolation, "fill": fill}
    options = {"batch_size": 10, "seed": 9, "decode": "exact", "samples_per_epoch": 10}
    with (
        shardtool.Loader(shards, transform=[resize], **options) as plain,
        shardtool.Loader(shards, transform=[resize, step], **options) as loader,
    ):
        (before,), (after,) = list(plain), list(loader)
    mode = functional.InterpolationMode(interpolation)
    for row, number in enumerate(after.indices.tolist()):
        draws = Draws(9, 0, number)
        key = [math.floor(draws.next() * 2**32) for _ in range(2)]
        image = before.images[row]
        field = displacement(key, alpha, sigma).to(torch.float32)
        want = functional.elastic_transform(image, field, mode, fill if isinstance(fill, list) else [fill])
        difference = (after.images[row].to(torch.int16) - want.to(torch.int16)).abs().numpy()
        if interpolation == "nearest":
            # Positions exactly between two pixels.
            assert (difference > 0).mean() < 0.01
        else:
            assert difference.max() <= 1
        assert np.abs(want.to(torch.int16) - image.to(torch.int16)).max() > 20


def test_a_pipeline_with_elastic_is_translated():
    transforms = pytest.importorskip("torchvision.transforms")
    if not hasattr(transforms, "ElasticTransform"):
        pytest.skip("this torchvision has no ElasticTransform")
    pipeline = transforms.Compose([transforms.Resize((64, 64)), transforms.ElasticTransform(30.0, 4.0)])
    [_, step] = shardtool.steps_from(pipeline)
    assert step == {"name": "ElasticTransform", "alpha": 30.0, "sigma": 4.0, "interpolation": "bilinear"}
