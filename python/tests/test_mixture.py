"""Several datasets in one loader."""

import json

import pytest

import shardtool

pytestmark = pytest.mark.usefixtures("lent_readers")


def rows(batch):
    return [(int(s), int(n)) for s, n, ok in zip(batch.dataset_index, batch.indices, batch.valid) if ok]


OPTIONS = {"transform": "eval224", "batch_size": 8, "seed": 3, "workers": 1, "fields": []}


def test_a_mixture_has_its_shares_and_states_the_dataset_of_each_row(small, photos):
    mixture = shardtool.Mixture([{"dataset": small, "weight": 0.5}, {"dataset": photos, "weight": 0.5}])
    with mixture.loader(**OPTIONS) as loader:
        seen = [row for batch in loader for row in rows(batch)]
    counts = [sum(1 for source, _ in seen if source == d) for d in (0, 1)]
    assert counts[0] == counts[1]
    assert len(set(seen)) == len(seen)


def test_a_mixture_resumes_at_its_position_also_with_other_weights(small, photos):
    parts = [{"dataset": small, "weight": 1}, {"dataset": photos, "weight": 1}]
    with shardtool.Loader(shardtool.Mixture(parts), **OPTIONS) as loader:
        before, state = [], None
        for batch in loader:
            before += rows(batch)
            if batch.batch_index == 2:
                state = loader.state_dict()
                break
        whole = loader.with_weights(state, [3, 1])
    with shardtool.Loader(shardtool.Mixture(parts), **OPTIONS) as loader:
        loader.load_state_dict(json.loads(json.dumps(whole)))
        after = [row for batch in loader for row in rows(batch)]
    assert not set(before) & set(after[: len(after) // 8])
    assert sum(1 for s, _ in after if s == 0) > 2 * sum(1 for s, _ in after if s == 1)


def test_a_loader_chooses_and_orders_samples_of_all_datasets(small, photos):
    mixture = shardtool.Mixture([{"dataset": small}, {"dataset": photos}])
    with mixture.loader(**OPTIONS) as loader:
        every = {row for batch in loader for row in rows(batch)}
    first = sum(1 for source, _ in every if source == 0)
    with mixture.loader(indices=[first + 1, 0, first + 1], **OPTIONS) as loader:
        assert [row for batch in loader for row in rows(batch)] == [(1, 1), (0, 0), (1, 1)]
    with mixture.loader(samples_per_epoch=2 * len(every), **OPTIONS) as loader:
        assert {row for batch in loader for row in rows(batch)} == every
    refused = pytest.raises(shardtool.OptionError, match="No sample is selected")
    with mixture.loader(where="width > 99999", **OPTIONS) as loader, refused:
        loader.info()


def test_datasets_that_cannot_be_mixed_are_an_option_error(small, photos):
    with pytest.raises(shardtool.OptionError, match="Part 1 of the mixture"):
        shardtool.Mixture([{"dataset": small}, "photos"])
    unweighted = shardtool.Mixture([{"dataset": small, "weight": 1}, {"dataset": photos}])
    with shardtool.Loader(unweighted) as loader, pytest.raises(shardtool.OptionError, match="has no weight"):
        loader.info()
    alone = shardtool.Mixture([{"dataset": small}])
    refused = pytest.raises(shardtool.OptionError, match="split is for a single")
    with shardtool.Loader(alone, split="train") as loader, refused:
        loader.info()
