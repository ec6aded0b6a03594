"""Batches of several sizes."""

import json
from itertools import chain

import numpy as np
import pytest

import shardtool

BUCKETS = {"area": 128 * 128, "step": 32, "max_ratio": 2, "crop": "random"}
OPTIONS = {"aspect_buckets": BUCKETS, "batch_size": 6, "seed": 3, "workers": 1}


def rows(batch):
    return [int(n) for n, ok in zip(batch.indices, batch.valid) if ok]


@pytest.mark.usefixtures("lent_readers")
def test_each_batch_has_one_size_and_states_which_part_of_each_image_is_shown(photos):
    with shardtool.Loader(photos, **OPTIONS) as loader:
        seen, sizes = [], set()
        for batch in loader:
            n, channels, height, width = batch.images.shape
            assert (channels, height % 32, width % 32) == (3, 0, 0)
            assert height * width <= 128 * 128
            sizes.add((height, width))
            crop = batch.crop
            for pairs in crop:
                assert tuple(pairs.shape) == (n, 2)
            assert (crop.top_left >= 0).all()
            assert (np.array(crop.top_left) + np.array([height, width]) <= np.array(crop.resized_size)).all()
            assert (np.array(crop.resized_size) == [height, width]).any(axis=1).all()
            assert (np.array(crop.original_size) > [height, width]).all()
            seen += rows(batch)
        assert sorted(seen) == list(range(loader.num_samples))
        assert len(sizes) > 1


def test_a_run_resumes_at_its_position_and_then_continues_with_the_next_epoch(photos):
    with shardtool.Loader(photos, **OPTIONS) as loader:
        batches = [(rows(batch), loader.state_dict()) for batch in loader]
        following = [rows(batch) for batch in loader]
        assert len(loader) == len(batches)
    state = json.loads(json.dumps(batches[3][1]))
    with shardtool.Loader(photos, **OPTIONS) as loader:
        loader.load_state_dict(state)
        assert [rows(batch) for batch in loader] == [of for of, _ in batches[4:]]
        assert [rows(batch) for batch in loader] == following
        # A reader that ended is started again at the next epoch.
        loader.close()
        third = [rows(batch) for batch in loader]
    assert sorted(chain.from_iterable(third)) == sorted(chain.from_iterable(following))


@pytest.mark.usefixtures("lent_readers")
def test_other_outputs_have_the_crop_too(photos):
    with shardtool.Loader(photos, output="numpy", **OPTIONS) as loader:
        batch = next(iter(loader))
        assert batch.images.shape[0] == 6
        assert batch.crop.original_size.dtype == np.int64
    with shardtool.Loader(photos, batch_size=4, transform="eval224") as loader:
        assert next(iter(loader)).crop is None


@pytest.mark.usefixtures("lent_readers")
def test_an_invalid_option_is_an_option_error(photos):
    with (
        shardtool.Loader(photos, aspect_buckets=[(64, 64), (8, 800)], workers=1) as loader,
        pytest.raises(shardtool.OptionError, match="no sample is nearest to 800x8"),
    ):
        loader.info()
