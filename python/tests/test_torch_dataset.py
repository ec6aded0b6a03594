"""For code that insists on torch.utils.data."""

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset

import shardtool


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
