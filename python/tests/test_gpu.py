"""Batches on a GPU, with torch's own CUDA, equal the batches of the CPU. Skipped without a GPU."""

import os
from collections import deque

import numpy as np
import pytest
import torch
from PIL import Image

import shardtool
from datasets import pack

HAS_GPU = torch.cuda.is_available()
if os.environ.get("SHARDTOOL_REQUIRE_GPU") and not HAS_GPU:
    raise RuntimeError(f"torch {torch.__version__} has no GPU here")
pytestmark = pytest.mark.skipif(not HAS_GPU, reason="torch has no GPU here")

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
OPTIONS = {"batch_size": 16, "transform": [{"name": "random_resized_crop", "size": 64}], "workers": 2, "seed": 5}


@pytest.fixture(scope="module")
def numbered(tmp_path_factory):
    """200 images with their number in each pixel: in red what is beyond 100, in green the rest, and noise in blue."""
    folder = tmp_path_factory.mktemp("numbered")
    rng = np.random.default_rng(3)
    for number in range(200):
        pixels = np.empty((96, 80, 3), np.uint8)
        pixels[..., 0], pixels[..., 1] = divmod(number, 100)
        pixels[..., 2] = rng.integers(0, 256, (96, 80), dtype=np.uint8)
        file = folder / "images" / f"class{number % 7}" / f"{number:03}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(file)
    return pack(folder / "images", folder / "shards")


def on_the_host(location, epochs=1, **options):
    with shardtool.Loader(location, with_keys=True, **{**OPTIONS, **options}) as loader:
        return [(images.clone(), labels.clone(), keys) for _ in range(epochs) for images, labels, keys in loader]


def busy(milliseconds=20):
    """Pending work on the GPU in the stream of the training step."""
    torch.cuda._sleep(int(milliseconds * 1.5e6))


def same(got, expected):
    assert len(got) == len(expected) > 0
    for (images, labels, keys), (images_0, labels_0, keys_0) in zip(got, expected):
        assert images.is_cuda and labels.is_cuda and images.dtype == images_0.dtype
        assert torch.equal(images.cpu(), images_0) and torch.equal(labels.cpu(), labels_0)
        assert list(keys) == list(keys_0)


def test_batches_on_a_gpu_are_those_of_the_cpu(numbered):
    expected = on_the_host(numbered, epochs=3)
    with shardtool.Loader(numbered, with_keys=True, device="cuda", **OPTIONS) as loader:
        same([tuple(batch) for _ in range(3) for batch in loader], expected)


def test_batches_on_a_gpu_are_correct_after_a_slow_step(numbered):
    expected = on_the_host(numbered, epochs=2)
    with shardtool.Loader(numbered, with_keys=True, device="cuda", **OPTIONS) as loader:
        got = []
        for _ in range(2):
            for images, labels, keys in loader:
                busy()
                got.append((images.clone(), labels, keys))
        same(got, expected)


def test_batches_on_a_gpu_that_are_kept_for_a_while_stay_as_they_are(numbered):
    expected = on_the_host(numbered, epochs=3)
    kept, late = deque(), []
    with shardtool.Loader(numbered, with_keys=True, device="cuda", **OPTIONS) as loader:
        for _ in range(3):
            for batch in loader:
                busy(5)
                kept.append(tuple(batch))
                if len(kept) > 5:
                    images, *rest = kept.popleft()
                    late.append((images.clone(), *rest))
    same([*late, *kept], expected)


def test_batches_on_a_gpu_are_right_on_a_stream_of_the_caller(numbered):
    expected = on_the_host(numbered)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), shardtool.Loader(numbered, with_keys=True, device="cuda", **OPTIONS) as loader:
        got = []
        for images, labels, keys in loader:
            busy()
            got.append((images.clone(), labels, keys))
    stream.synchronize()
    same(got, expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_gpu_normalizes_and_converts(numbered, dtype):
    scale = torch.tensor([1 / (255 * s) for s in STD], device="cuda").view(1, 3, 1, 1)
    bias = torch.tensor([-m / s for m, s in zip(MEAN, STD)], device="cuda").view(1, 3, 1, 1)
    host = on_the_host(numbered)
    with shardtool.Loader(
        numbered, with_keys=True, device="cuda", dtype=dtype, mean=MEAN, std=STD, **OPTIONS
    ) as loader:
        for (images, labels, keys), (pixels, labels_0, keys_0) in zip(loader, host):
            expected = (pixels.cuda().float() * scale + bias).to(getattr(torch, dtype))
            assert images.is_contiguous(memory_format=torch.channels_last)
            assert images.dtype == expected.dtype
            torch.testing.assert_close(images, expected)
            assert torch.equal(labels.cpu(), labels_0) and list(keys) == list(keys_0)


def test_pinned_batches_are_page_locked_and_copied_in_the_background(numbered):
    expected = on_the_host(numbered, epochs=2)
    got = []
    with shardtool.Loader(numbered, with_keys=True, pin_memory=True, **OPTIONS) as loader:
        for _ in range(2):
            for images, labels, keys in loader:
                assert images.is_pinned()
                busy(5)
                got.append((images.to("cuda", non_blocking=True), labels.to("cuda", non_blocking=True), keys))
    torch.cuda.synchronize()
    same(got, expected)


def test_a_loader_on_a_gpu_resumes_in_the_middle_of_an_epoch(numbered):
    expected = on_the_host(numbered)
    with shardtool.Loader(numbered, with_keys=True, device="cuda", **OPTIONS) as loader:
        batches = iter(loader)
        got = [tuple(next(batches)) for _ in range(4)]
        state = loader.state_dict()
    with shardtool.Loader(numbered, with_keys=True, device="cuda", **OPTIONS) as loader:
        loader.load_state_dict(state)
        got += [tuple(batch) for batch in loader]
    same(got, expected)


def test_many_loaders_on_a_gpu_give_their_memory_back(numbered):
    before = torch.cuda.memory_allocated()
    for _ in range(8):
        with shardtool.Loader(numbered, device="cuda", **OPTIONS) as loader:
            next(iter(loader))
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() - before < 2**20


def test_a_small_network_learns_the_class_of_numbered_images(numbered):
    """Labels belong to pixels: a table of the numbers in the pixels is enough to know the class."""
    table = torch.full((200,), -1, device="cuda")
    with shardtool.Loader(numbered, device="cuda", **OPTIONS) as loader:
        for _ in range(3):
            for images, labels in loader:
                middle = images[:, :2, 32, 32].long()
                numbers = middle[:, 0] * 100 + middle[:, 1]
                assert torch.equal(labels.long(), numbers % 7)
                table[numbers] = labels.long()
    assert torch.equal(table.cpu(), torch.arange(200) % 7)
