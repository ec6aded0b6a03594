"""A run goes on exactly where its state was taken."""

import json

import pytest

import shardtool
from datasets import lines, seen


def loader_of(location, **options):
    return shardtool.Loader(location, **{"batch_size": 16, "output": "numpy", "with_keys": True, "seed": 5, **options})


def run(loader, epochs):
    return [seen(batch) for _ in range(epochs) for batch in loader]


@pytest.fixture(scope="module")
def whole(small):
    """Two epochs of one loader that nobody stopped: 13 batches each."""
    with loader_of(small) as loader:
        return run(loader, 2)


@pytest.mark.parametrize("taken_after", [1, 7, 13])
def test_a_state_taken_after_any_batch_is_taken_up_exactly(small, whole, taken_after):
    with loader_of(small) as loader:
        for batch in loader:
            if batch.batch_index == taken_after - 1:
                state = json.loads(json.dumps(loader.state_dict()))
                break
    with loader_of(small) as loader:
        loader.load_state_dict(state)
        rest = run(loader, 2 if taken_after < 13 else 1)
    assert lines(rest) == lines(whole[taken_after:])


def test_a_state_is_taken_up_by_the_loader_that_gave_it(small):
    with loader_of(small) as loader:
        iterator = iter(loader)
        first = [seen(next(iterator)) for _ in range(4)]
        state = loader.state_dict()
        rest = [seen(batch) for batch in iterator]
        loader.load_state_dict(state)
        assert lines(run(loader, 1)) == lines(rest)
        assert len(first) + len(rest) == 13


def test_set_epoch_of_the_state_s_own_epoch_goes_on_in_it_and_of_another_begins_it(small):
    with loader_of(small) as loader:
        for batch in loader:
            if batch.batch_index == 3:
                break
        state = loader.state_dict()
    with loader_of(small) as loader:
        loader.load_state_dict(state)
        assert len(loader) == 13
        assert loader.info()["batches"] == 9
        loader.set_epoch(0)
        assert len(list(loader)) == 9
        loader.load_state_dict(state)
        loader.set_epoch(1)
        assert len(list(loader)) == 13


def test_a_state_after_the_last_batch_goes_on_with_the_next_epoch(small, whole):
    with loader_of(small) as loader:
        run(loader, 1)
        state = loader.state_dict()
    with loader_of(small) as loader:
        loader.load_state_dict(state)
        assert run(loader, 1) == whole[13:]


def test_a_state_from_before_the_first_batch_is_the_start(small):
    with loader_of(small) as loader:
        state = loader.state_dict()
        assert (state["epoch"], state["position"]) == (0, 0)
        whole = run(loader, 1)
    with loader_of(small) as loader:
        loader.load_state_dict(state)
        assert loader.state_dict() == state
        assert run(loader, 1) == whole


def test_two_ranks_take_up_the_state_of_one(small):
    with loader_of(small, streams=12, block_samples=4) as loader:
        whole = run(loader, 1)
    with loader_of(small, streams=12, block_samples=4) as loader:
        for batch in loader:
            if batch.batch_index == 4:
                break
        state = loader.state_dict()
    rest = []
    for rank in range(2):
        with loader_of(small, batch_size=8, rank=rank, world_size=2) as loader:
            loader.load_state_dict(state)
            rest += run(loader, 1)
    assert sorted(lines(rest)) == sorted(lines(whole[5:]))


def test_a_state_of_another_dataset_or_order_is_refused(small, photos):
    with loader_of(small) as loader:
        state = loader.state_dict()
    with loader_of(photos, transform="eval224") as loader:
        loader.load_state_dict(state)
        with pytest.raises(shardtool.StateError, match="belongs to another dataset"):
            next(iter(loader))
    with loader_of(small, seed=6) as loader:
        loader.load_state_dict(state)
        with pytest.raises(shardtool.StateError, match="seed 5, but seed is 6"):
            next(iter(loader))
    with loader_of(small) as loader:
        loader.load_state_dict({"epoch": 3})
        with pytest.raises(shardtool.StateError, match="not a state that a loader gave"):
            len(loader)


def test_a_loop_over_an_epoch_that_its_state_has_ended_is_empty(small):
    with loader_of(small) as loader:
        loader.set_epoch(4)
        run(loader, 1)
        state = loader.state_dict()
        whole = run(loader, 1)
    # What a training loop does that saves its own epoch along with the state.
    with loader_of(small) as loader:
        loader.load_state_dict(state)
        seen_of = []
        for epoch in (4, 5):
            loader.set_epoch(epoch)
            seen_of.append(run(loader, 1))
        assert seen_of == [[], whole]
        loader.set_epoch(4)
        assert len(run(loader, 1)) == 13
