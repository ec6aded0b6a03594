"""A run resumes exactly at its state."""

import json

import pytest

import shardtool
from datasets import lines, seen


def loader_of(location, **options):
    return shardtool.Loader(location, **{"batch_size": 16, "output": "numpy", "with_keys": True, "seed": 5, **options})


def run(loader, epochs):
    return [seen(batch) for _ in range(epochs) for batch in loader]


@pytest.fixture(scope="module")
def giver(small):
    """Collects the states of all tests, and `taker` loads them in a separate process: loaders are slow to start."""
    with loader_of(small) as loader:
        yield loader


@pytest.fixture(scope="module")
def taker(small):
    with loader_of(small) as loader:
        yield loader


@pytest.fixture(scope="module")
def whole(giver):
    """Two uninterrupted epochs: 13 batches each."""
    giver.set_epoch(0)
    return run(giver, 2)


def stopped(loader, batches):
    """The state after this many batches of epoch 0, as stored in a checkpoint."""
    loader.set_epoch(0)
    for batch in loader:
        if batch.batch_index == batches - 1:
            return json.loads(json.dumps(loader.state_dict()))
    return None


@pytest.mark.parametrize("taken_after", [1, 7, 13])
def test_a_state_after_any_batch_resumes_exactly(giver, taker, whole, taken_after):
    taker.load_state_dict(stopped(giver, taken_after))
    rest = run(taker, 2 if taken_after < 13 else 1)
    assert lines(rest) == lines(whole[taken_after:])


def test_a_run_that_resumes_with_another_codec_is_warned(giver, small):
    state = stopped(giver, 1)
    other = {"turbojpeg": "sharp", "sharp": "turbojpeg"}[state["codec"]]
    with loader_of(small) as loader:
        loader.load_state_dict({**state, "codec": other})
        with pytest.warns(UserWarning, match=f"saved while {other} decoded JPEGs, but now {state['codec']} does"):
            next(iter(loader))


def test_a_state_can_be_loaded_by_the_loader_that_made_it(giver):
    giver.set_epoch(0)
    iterator = iter(giver)
    first = [seen(next(iterator)) for _ in range(4)]
    state = giver.state_dict()
    rest = [seen(batch) for batch in iterator]
    giver.load_state_dict(state)
    assert lines(run(giver, 1)) == lines(rest)
    assert len(first) + len(rest) == 13


def test_set_epoch_with_the_epoch_of_the_state_resumes_it_and_with_another_begins_that(giver, taker):
    state = stopped(giver, 4)
    taker.load_state_dict(state)
    assert len(taker) == 13
    assert taker.info()["batches"] == 9
    taker.set_epoch(0)
    assert len(list(taker)) == 9
    taker.load_state_dict(state)
    taker.set_epoch(1)
    assert len(list(taker)) == 13


@pytest.mark.parametrize("batches", [13, 2])
def test_a_state_after_set_epoch_is_the_start_of_that_epoch(giver, taker, batches):
    giver.set_epoch(0)
    iterator = iter(giver)
    for _ in range(batches):
        next(iterator)
    giver.set_epoch(1)
    assert giver.state_dict()["epoch"] == 0
    giver.set_epoch(4)
    state = giver.state_dict()
    assert state["epoch"] == 4
    taker.load_state_dict(state)
    assert lines(run(taker, 1)) == lines(run(giver, 1))


def test_a_state_after_the_last_batch_resumes_with_the_next_epoch(giver, taker, whole):
    giver.set_epoch(0)
    run(giver, 1)
    taker.load_state_dict(giver.state_dict())
    assert run(taker, 1) == whole[13:]


def test_a_state_from_before_the_first_batch_is_the_start(small, taker):
    with loader_of(small) as loader:
        state = loader.state_dict()
        assert (state["epoch"], state["position"]) == (0, 0)
        whole = run(loader, 1)
    taker.load_state_dict(state)
    assert taker.state_dict() == state
    assert run(taker, 1) == whole


def test_two_ranks_take_up_the_state_of_one(small):
    with loader_of(small, streams=12, block_samples=4) as loader:
        whole = run(loader, 1)
        state = stopped(loader, 5)
    rest = []
    for rank in range(2):
        with loader_of(small, batch_size=8, rank=rank, world_size=2) as loader:
            loader.load_state_dict(state)
            rest += run(loader, 1)
    assert sorted(lines(rest)) == sorted(lines(whole[5:]))


def test_a_state_of_another_dataset_or_order_is_rejected(small, photos, giver, taker):
    state = giver.state_dict()
    with loader_of(photos, transform="eval224") as loader:
        loader.load_state_dict(state)
        with pytest.raises(shardtool.StateError, match="belongs to another dataset"):
            next(iter(loader))
    with loader_of(small, seed=6) as loader:
        loader.load_state_dict(state)
        with pytest.raises(shardtool.StateError, match="seed 5, but seed is 6"):
            next(iter(loader))
    taker.load_state_dict({"epoch": 3})
    with pytest.raises(shardtool.StateError, match="not a state of a loader"):
        len(taker)


def test_a_loop_over_an_epoch_that_its_state_has_ended_is_empty(giver, taker):
    giver.set_epoch(4)
    run(giver, 1)
    state = giver.state_dict()
    whole = run(giver, 1)
    # Like a training loop that saves its own epoch with the state.
    taker.load_state_dict(state)
    seen_of = []
    for epoch in (4, 5):
        taker.set_epoch(epoch)
        seen_of.append(run(taker, 1))
    assert seen_of == [[], whole]
    taker.set_epoch(4)
    assert len(run(taker, 1)) == 13
