"""Epochs, loops that end early, and the loader's lifetime."""

import math

import pytest

import shardtool
from datasets import lines, of_referee, seen, typescript_batches


def loader_of(location, **options):
    return shardtool.Loader(location, **{"batch_size": 32, "output": "numpy", "with_keys": True, **options})


@pytest.fixture(scope="module")
def opened(small):
    """One loader for tests that work with any: loaders are slow to start."""
    with loader_of(small) as loader:
        yield loader


@pytest.fixture
def loader(opened):
    opened.set_epoch(0)
    return opened


def test_each_loop_is_the_next_epoch(small):
    with loader_of(small) as loader:
        batches = [[seen(batch) for batch in loader] for _ in range(3)]
    assert [batch[0]["epoch"] for batch in batches] == [0, 1, 2]
    (referee,) = typescript_batches(small, {"batchSize": 32}, epochs=3)
    assert [batch for epoch in batches for batch in epoch] == of_referee(referee)


def test_set_epoch_chooses_the_epoch_of_the_next_loop_and_of_that_alone(small, loader):
    epochs = []
    for epoch in (7, 7, 2, None):
        if epoch is not None:
            loader.set_epoch(epoch)
        epochs.append([seen(batch) for batch in loader])
    assert [batches[0]["epoch"] for batches in epochs] == [7, 7, 2, 3]
    assert epochs[0] == epochs[1]
    with loader_of(small, epoch=7) as loader:
        assert [seen(batch) for batch in loader] == epochs[0]


def test_a_loop_that_was_left_does_not_disturb_the_next(loader):
    for batch in loader:
        if batch.batch_index == 2:
            break
    assert [batch.epoch for batch in loader] == [1] * 7
    first = seen(next(iter(loader)))
    assert (first["epoch"], first["index"]) == (2, 0)
    loader.set_epoch(2)
    again = [seen(batch) for batch in loader]
    assert again[0] == first
    assert len(again) == 7


def test_a_loop_ends_where_another_one_begins(loader):
    older = iter(loader)
    next(older)
    assert len(list(loader)) == 7
    with pytest.raises(shardtool.StaleIteratorError, match="another loop was started"):
        next(older)
    assert list(older) == []


def test_a_finished_iterator_stays_finished(loader):
    iterator = iter(loader)
    assert len(list(iterator)) == 7
    assert next(iterator, None) is None
    assert len(list(loader)) == 7


def test_length_and_info_are_those_of_the_coming_epoch(small, loader):
    assert len(loader) == 7
    assert loader.num_samples == 200
    assert loader.classes == ["a", "b"]
    info = loader.info()
    assert (info["samples"], info["batches"], info["batch_size"], info["rank"]) == (200, 7, 32, 0)
    assert info["codec"] is None or isinstance(info["codec"], dict)
    with loader_of(small, last_batch="drop") as loader:
        assert len(loader) == len(list(loader)) == 6
    with loader_of(small, epochs_per_loop=math.inf) as loader:
        with pytest.raises(TypeError, match="has no length"):
            len(loader)
        assert [batch.epoch for batch, _ in zip(loader, range(9))] == [0] * 7 + [1] * 2


def test_a_closed_loader_continues_with_the_next_epoch_when_it_is_used_again(small):
    loader = loader_of(small, weights={"a": 1.3, "b": 0.7})
    first = [seen(batch) for batch in loader]
    loader.close()
    loader.close()
    second = [seen(batch) for batch in loader]
    loader.close()
    (referee,) = typescript_batches(small, {"batchSize": 32, "weights": {"a": 1.3, "b": 0.7}}, epochs=2)
    assert lines(first + second) == lines(of_referee(referee))


def test_closing_ends_the_loop_under_way(small):
    loader = loader_of(small)
    iterator = iter(loader)
    next(iterator)
    loader.close()
    with pytest.raises(shardtool.StaleIteratorError, match="the loader was closed"):
        next(iterator)


def test_the_report_shows_where_the_time_was_spent(small):
    with loader_of(small) as loader:
        list(loader)
        report = loader.report()
    assert (report["batches"], report["samples"], report["bad"]) == (7, 200, 0)
    assert report["bound"] in ("io", "decode", "consumer")
