"""For code that requires torch.utils.data."""

import itertools
import os
import pickle
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace

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
def test_the_error_for_a_data_loader_around_a_loader_says_what_to_use_instead(small, how):
    wanted = r"^A Loader yields whole batches .* shardtool.iterable_dataset\(...\) with batch_size=None"
    with shardtool.Loader(small, batch_size=32) as loader, pytest.raises(TypeError, match=wanted):
        next(iter(DataLoader(loader, **how)))


@pytest.mark.parametrize("how", [{}, {"batch_size": 4}])
def test_a_data_loader_that_would_collate_batches_is_rejected_with_a_remedy(small, how):
    dataset = shardtool.iterable_dataset(small, batch_size=32)
    with pytest.raises(shardtool.OptionError, match=r"use DataLoader\(dataset, batch_size=None\)"):
        next(iter(DataLoader(dataset, **how)))
    dataset.close()


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
def test_workers_of_a_dataloader_are_rejected_with_a_remedy(small, context):
    dataset = shardtool.iterable_dataset(small)
    loader = DataLoader(dataset, batch_size=None, num_workers=1, multiprocessing_context=context)
    with pytest.raises((shardtool.ShardtoolError, TypeError), match="num_workers=0"):
        next(iter(loader))


def batches_of(loader):
    """The properties of each batch that a training loop uses."""
    return [
        {
            "valid": batch.valid.tolist(),
            "numbers": batch.indices.tolist(),
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
            numbers += batch.indices[batch.valid].tolist()
        dataset.close()
    # 200 samples in 2 x 4 batches of 32: 56 rows pad the ranks to the same length.
    assert rows == 256
    assert sorted(numbers) == list(range(200))


def test_padded_rows_can_be_distinguished_from_samples_in_a_dataloader(small):
    assert_each_sample_counts_once(small, lambda dataset: DataLoader(dataset, batch_size=None))


def test_padded_rows_can_be_distinguished_in_a_stateful_dataloader_which_also_resumes(small):
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
    assert moved.images.dtype == moved.labels.dtype == moved.valid.dtype == moved.indices.dtype == torch.float64
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


class IterableDatasetShard(IterableDataset):
    """Like Accelerate's, as far as a dataset can tell."""

    def __init__(self, dataset, batch_size, num_processes, process_index, split_batches=False):
        self.dataset, self.batch_size, self.split_batches = dataset, batch_size, split_batches
        self.num_processes, self.process_index = num_processes, process_index

    def set_epoch(self, epoch):
        self.dataset.set_epoch(epoch)

    def __len__(self):
        return -(-len(self.dataset) // (self.batch_size * self.num_processes)) * self.batch_size

    def __iter__(self):
        rows = self.batch_size if self.split_batches else self.batch_size * self.num_processes
        own = rows // self.num_processes
        batches = iter(self.dataset)
        while group := list(itertools.islice(batches, rows)):
            yield from group[self.process_index * own : (self.process_index + 1) * own]


class DataLoaderDispatcher:
    """Like Accelerate's, as far as a dataset can tell: the part of process 0."""

    def __init__(self, base_dataloader, num_processes, split_batches=False):
        self.base_dataloader, self.split_batches = base_dataloader, split_batches
        self.state = SimpleNamespace(num_processes=num_processes)

    def __len__(self):
        return -(-len(self.base_dataloader) // self.state.num_processes)

    def __iter__(self):
        yield from self.base_dataloader


@pytest.fixture
def accelerate(monkeypatch):
    module = ModuleType("accelerate.data_loader")
    module.IterableDatasetShard, module.DataLoaderDispatcher = IterableDatasetShard, DataLoaderDispatcher
    monkeypatch.setitem(sys.modules, "accelerate.data_loader", module)


@pytest.mark.usefixtures("accelerate")
@pytest.mark.parametrize(("elements", "split"), [(None, False), (1, False), (2, True)])
@pytest.mark.parametrize("asks_length", [False, True])
def test_a_wrapper_that_takes_every_second_batch_gets_each_sample_once(small, elements, split, asks_length):
    numbers = []
    for rank in range(2):
        dataset = shardtool.iterable_dataset(small, batch_size=16)
        shard = IterableDatasetShard(dataset, elements, 2, rank, split)
        if asks_length:
            assert len(shard) == 7
        shard.set_epoch(1)
        batches = list(shard)
        assert (len(batches), len(dataset), batches[0].epoch) == (7, 7, 1)
        numbers += [number for batch in batches for number in batch.indices[batch.valid].tolist()]
        dataset.close()
    assert sorted(numbers) == list(range(200))


@pytest.mark.usefixtures("accelerate")
def test_a_wrapper_that_would_split_the_dataset_twice_is_rejected_by_name(small):
    dataset = shardtool.iterable_dataset(small, batch_size=16)
    with pytest.raises(shardtool.OptionError, match="would split it again: update accelerate"):
        next(iter(IterableDatasetShard(dataset, 1, 2, 0)))
    with pytest.raises(
        shardtool.OptionError, match="combines 4 of them on each of 2 ranks: set its batch_size to None or 1"
    ):
        IterableDatasetShard(dataset, 4, 2, 0).set_epoch(0)
    other = shardtool.iterable_dataset(small, rank=0, world_size=2)
    with pytest.raises(shardtool.OptionError, match="rank=0 and world_size=2, but Accelerate reads it as rank 1 of 2"):
        len(IterableDatasetShard(other, 1, 2, 1))
    # A wrapper that agrees changes nothing, and without a wrapper the dataset is unchanged.
    assert len(IterableDatasetShard(other, 1, 2, 0)) == 2
    assert len(list(dataset)) == 13
    other.close()
    dataset.close()


@pytest.mark.usefixtures("accelerate")
def test_a_process_that_reads_for_all_gets_all_samples_and_sends_tensors(small):
    dataset = shardtool.iterable_dataset(small, global_batch_size=64)
    loader = DataLoaderDispatcher(DataLoader(dataset, batch_size=None), num_processes=2)
    assert len(loader) == 4
    with pytest.warns(UserWarning, match="reads this dataset in one process for all 2.*dispatch_batches=False"):
        batches = list(loader)
    # Accelerate joins two batches to one.
    assert [len(labels) for _, labels in batches] == [32] * 6 + [8]
    assert all(type(batch)._fields == ("images", "labels") for batch in batches)
    # Accelerate's other processes get the bytes without the strides.
    assert all(images.is_contiguous() for images, _ in batches)
    collated = DataLoaderDispatcher(DataLoader(dataset, batch_size=None, collate_fn=lambda batch: batch.indices), 1)
    assert sorted(torch.cat(list(collated)).tolist()) == list(range(200))
    dataset.close()


@pytest.mark.usefixtures("accelerate")
@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"with_keys": True, "fields": ["json"]}, "remove with_keys, fields, use dispatch_batches=False"),
        ({"on_bad": "skip"}, "on_bad='skip'"),
        ({"output": "numpy"}, "output='numpy'"),
    ],
)
def test_the_error_for_batches_that_cannot_be_sent_names_them(small, options, named):
    dataset = shardtool.iterable_dataset(small, **options)
    with pytest.raises(shardtool.OptionError, match=named):
        next(iter(DataLoaderDispatcher(DataLoader(dataset, batch_size=None), 1)))


def test_it_goes_to_another_process_with_its_options_and_epoch(small):
    dataset = shardtool.iterable_dataset(small, batch_size=32, seed=4, with_keys=True)
    expected = [batch.keys for batch in dataset]
    dataset.set_epoch(1)
    next_epoch = [batch.keys for batch in dataset]
    dataset.set_epoch(0)
    again = pickle.loads(pickle.dumps(dataset))
    assert [batch.keys for batch in again] == expected
    assert [batch.keys for batch in pickle.loads(pickle.dumps(again))] == next_epoch
    again.close()
    dataset.close()
