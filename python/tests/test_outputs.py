"""Types and shapes of images and labels. How long they are valid is in test_ownership.py."""

import numpy as np
import pytest
import torch

import shardtool
from datasets import crc_rows

pytestmark = pytest.mark.usefixtures("lent_readers")


def test_torch_images_are_channels_last_views_and_labels_int64(photos):
    with shardtool.Loader(photos, batch_size=32, transform="train224") as loader:
        for images, labels in loader:
            rows = len(images)
            assert isinstance(images, torch.Tensor) and images.dtype == torch.uint8
            assert images.shape == (rows, 3, 224, 224)
            assert images.is_contiguous(memory_format=torch.channels_last)
            assert labels.dtype == torch.int64 and labels.shape == (rows,)
            assert int(labels.min()) >= 0 and int(labels.max()) < len(loader.classes)


def test_torch_images_of_float32_are_contiguous(photos):
    transform = [{"name": "randomResizedCrop", "size": 64}, {"name": "toDtype", "dtype": "float32", "scale": True}]
    with shardtool.Loader(photos, transform=transform) as loader:
        images, _ = next(iter(loader))
        assert images.dtype == torch.float32 and images.shape[1:] == (3, 64, 64) and images.is_contiguous()
        assert float(images.min()) >= 0 and float(images.max()) <= 1


def test_torch_numpy_and_dlpack_show_the_same_pixels(photos):
    rows = []
    for output in ("torch", "numpy", "dlpack"):
        with shardtool.Loader(photos, batch_size=20, transform="train224", output=output, seed=1) as loader:
            for images, labels in loader:
                if output == "dlpack":
                    assert images.shape == (20, 224, 224, 3) and len(labels) == 20
                    images, labels = torch.from_dlpack(images), torch.from_dlpack(labels)
                elif output == "torch":
                    images = images.permute(0, 2, 3, 1)
                rows.append((output, crc_rows(np.asarray(images)), np.asarray(labels).tolist()))
    per_output = len(rows) // 3
    strip = [row[1:] for row in rows]
    assert strip[:per_output] == strip[per_output : 2 * per_output] == strip[2 * per_output :]


def test_a_batch_has_its_parts_by_name(small):
    with shardtool.Loader(small, batch_size=10, with_keys=True) as loader:
        batch = next(iter(loader))
        images, labels, keys = batch
        assert batch.images is images and batch.labels is labels and batch.keys is keys
        assert batch.valid.dtype == torch.bool and batch.indices.dtype == torch.int64
        assert (batch.epoch, batch.batch_index, batch.fields) == (0, 0, {})
    with shardtool.Loader(small, batch_size=10) as loader:
        assert next(iter(loader)).keys is None


def test_batches_outlive_the_loader(small):
    loader = shardtool.Loader(small, batch_size=10, output="numpy")
    images, _ = next(iter(loader))
    rows = crc_rows(images)
    loader.close()
    del loader
    assert crc_rows(images) == rows


def test_images_and_labels_may_be_written_to(small):
    transform = [{"name": "toDtype", "dtype": "float32"}]
    with shardtool.Loader(small, batch_size=10, transform=transform) as loader:
        for images, labels in loader:
            images.div_(255)
            labels.add_(1)
            assert float(images.max()) <= 1


def test_other_outputs_are_rejected(small):
    with pytest.raises(ValueError, match='output must be "torch", "numpy" or "dlpack"'):
        shardtool.Loader(small, output="jax")
    with pytest.raises(shardtool.OptionError, match="reuse must be True or False"):
        shardtool.Loader(small, reuse=2)
