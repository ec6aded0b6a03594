"""For code that insists on torch.utils.data."""

import os
from importlib import import_module
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset

import shardtool
from datasets import pack, small_images

pytestmark = pytest.mark.usefixtures("lent_readers")


def test_it_is_an_iterable_dataset_of_whole_batches(small):
    dataset = shardtool.iterable_dataset(small, batch_size=32, seed=4)
    assert isinstance(dataset, IterableDataset)
    assert dataset.classes == ["a", "b"]
    loader = DataLoader(dataset, batch_size=None, num_workers=0)
    assert len(loader) == 7
    rows = 0
    for images, labels in loader:
        assert images.shape[1:] == (3, 32, 32) and labels.dtype == torch.int64
        rows += len(labels)
    assert rows == 200
    dataset.close()


@pytest.mark.parametrize("how", [{}, {"shuffle": True}, {"batch_size": None}])
def test_a_data_loader_around_a_loader_says_what_to_give_it_instead(small, how):
    wanted = r"^A Loader gives whole batches .* shardtool.iterable_dataset\(...\) with batch_size=None"
    with shardtool.Loader(small, batch_size=32) as loader, pytest.raises(TypeError, match=wanted):
        next(iter(DataLoader(loader, **how)))


def test_its_state_and_epoch_are_those_of_the_loader(small):
    dataset = shardtool.iterable_dataset(small, batch_size=32, with_keys=True)
    dataset.set_epoch(3)
    batches = [(batch.epoch, batch.keys) for batch in dataset]
    assert batches[0][0] == 3
    dataset.set_epoch(3)
    iterator = iter(dataset)
    next(iterator)
    state = dataset.state_dict()
    dataset.load_state_dict(state)
    assert [(batch.epoch, batch.keys) for batch in dataset] == batches[1:]
    dataset.close()


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_of_a_dataloader_are_refused_with_the_remedy(small, context):
    dataset = shardtool.iterable_dataset(small)
    loader = DataLoader(dataset, batch_size=None, num_workers=1, multiprocessing_context=context)
    with pytest.raises((shardtool.ShardtoolError, TypeError), match="num_workers=0"):
        next(iter(loader))


def batches_of(loader):
    """What of each batch a training loop would look at."""
    return [
        {
            "valid": batch.valid.tolist(),
            "numbers": batch.numbers.tolist(),
            "keys": batch.keys,
            "epoch": batch.epoch,
            "json": batch.fields["json"],
            "mix": batch.mix and (batch.mix.weight, batch.mix.other_labels.tolist()),
            "images": int(batch.images.sum()),
            "labels": batch[1].tolist(),
        }
        for batch in loader
    ]


OPTIONS = {"batch_size": 32, "fields": ["json"], "with_keys": True, "mix": {"name": "mixup", "alpha": 0.2}}


def test_a_dataloader_keeps_all_that_a_batch_has(small):
    with shardtool.Loader(small, **OPTIONS) as loader:
        expected = batches_of(loader)
    dataset = shardtool.iterable_dataset(small, **OPTIONS)
    assert batches_of(DataLoader(dataset, batch_size=None)) == expected
    dataset.close()


def assert_each_sample_counts_once(small, loader_of):
    numbers, rows = [], 0
    for rank in range(2):
        dataset = shardtool.iterable_dataset(small, batch_size=32, rank=rank, world_size=2, shuffle=True)
        for batch in loader_of(dataset):
            images, labels = batch
            assert len(images) == len(labels) == len(batch.valid) == 32
            rows += len(images)
            numbers += batch.numbers[batch.valid].tolist()
        dataset.close()
    # 200 samples in 2 x 4 batches of 32: 56 rows are there so that the ranks are as long as each other.
    assert rows == 256
    assert sorted(numbers) == list(range(200))


def test_rows_that_pad_an_uneven_end_are_told_from_samples_behind_a_dataloader(small):
    assert_each_sample_counts_once(small, lambda dataset: DataLoader(dataset, batch_size=None))


def test_the_same_behind_a_stateful_dataloader_which_also_goes_on_from_its_state(small):
    name = "torchdata.stateful_dataloader"
    is_needed = "SHARDTOOL_REQUIRE_TORCHDATA" in os.environ
    stateful = (import_module(name) if is_needed else pytest.importorskip(name)).StatefulDataLoader
    assert_each_sample_counts_once(small, lambda dataset: stateful(dataset, batch_size=None))
    dataset = shardtool.iterable_dataset(small, **OPTIONS)
    whole = batches_of(stateful(dataset, batch_size=None))
    dataset.set_epoch(0)
    loader = stateful(dataset, batch_size=None)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    dataset.close()
    other = shardtool.iterable_dataset(small, **OPTIONS)
    resumed = stateful(other, batch_size=None)
    resumed.load_state_dict(state)
    assert batches_of(resumed) == whole[1:]
    other.close()


def test_a_batch_moves_with_all_of_its_tensors(small):
    dataset = shardtool.iterable_dataset(small, **OPTIONS)
    batch = next(iter(dataset))
    moved = batch.to(torch.float64)
    assert moved.images.dtype == moved.labels.dtype == moved.valid.dtype == moved.numbers.dtype == torch.float64
    assert moved.mix.other_labels.dtype == torch.float64
    assert (moved.keys, moved.fields, moved.epoch) == (batch.keys, batch.fields, batch.epoch)
    assert len(moved) == 3
    dataset.close()


@pytest.mark.parametrize("is_in_data_loader", [False, True])
def test_the_warning_of_samples_without_a_class_points_at_the_line_of_the_user(tmp_path, is_in_data_loader):
    small_images(tmp_path / "images", 4, classes=(".",))
    dataset = shardtool.iterable_dataset(pack(tmp_path / "images", tmp_path / "shards"), batch_size=4)
    with pytest.warns(UserWarning, match="so its label is -1") as warned:
        list(DataLoader(dataset, batch_size=None) if is_in_data_loader else dataset.loader)
    dataset.close()
    assert [Path(warning.filename).name for warning in warned] == ["test_torch_dataset.py"]
