"""Repeated augmentation, and the samplers of other programs that do it."""

import zlib

import numpy as np
import pytest

import shardtool

CROP = [{"name": "randomResizedCrop", "size": 16, "scale": [0.1, 1]}]


def rows(loader):
    """Index and pixels of each valid row."""
    with loader:
        return [
            (int(index), zlib.crc32(np.ascontiguousarray(image)))
            for batch in loader
            for index, image, valid in zip(batch.indices, batch.images, batch.valid)
            if valid
        ]


def sampler_of_torchvision(order, rank, replicas, repeats, round_to):
    """The indices of a rank as RASampler of torchvision's references/classification/sampler.py selects them."""
    total = -(-len(order) * repeats // replicas) * replicas
    repeated = np.repeat(order, repeats)
    repeated = np.concatenate([repeated, repeated[: total - len(repeated)]])
    return repeated[rank:total:replicas][: len(order) // round_to * round_to // replicas].tolist()


@pytest.mark.usefixtures("lent_readers")
def test_each_repetition_has_the_pixels_of_a_dataset_that_asks_for_the_sample_again(small):
    loader = shardtool.Loader(small, transform=CROP, repeats=3, batch_size=7, seed=5, output="numpy", workers=2)
    found = rows(loader)
    with shardtool.Dataset(small, transform=CROP, seed=5, output="numpy") as dataset:
        dataset.set_epoch(0)
        assert found == [(index, zlib.crc32(np.ascontiguousarray(dataset[index].image))) for index, _ in found]
        assert len(found) == 3 * len(dataset)
    assert len(set(found)) == len(found)
    assert all(len({index for index, _ in found[at : at + 3]}) == 1 for at in range(0, len(found), 3))


@pytest.mark.usefixtures("lent_readers")
def test_ranks_get_the_samples_of_the_sampler_of_torchvision(small):
    with shardtool.Dataset(small) as dataset:
        order = np.random.default_rng(11).permutation(len(dataset))
    # The samplers round to 256 rows, which is more than these samples.
    for replicas, round_to in ((1, 8), (2, 8), (4, 16)):
        samples = len(order) // round_to * round_to
        options = {"indices": order, "repeats": 3, "samples_per_epoch": samples, "transform": "raw", "output": "numpy"}
        for rank in range(replicas):
            loader = shardtool.Loader(
                small, **options, rank=rank, world_size=replicas, batch_size=4, last_batch="drop", workers=1
            )
            with loader:
                found = [int(index) for batch in loader for index in batch.indices]
            assert found == sampler_of_torchvision(order, rank, replicas, 3, round_to)


def test_the_arithmetic_of_torchvision_is_that_of_timm():
    torch = pytest.importorskip("torch")
    distributed_sampler = pytest.importorskip("timm.data.distributed_sampler")
    for samples, replicas, repeats in ((520, 4, 3), (777, 8, 3), (1030, 2, 4)):
        order = torch.randperm(samples, generator=torch.Generator().manual_seed(3)).numpy()
        for rank in range(replicas):
            sampler = distributed_sampler.RepeatAugSampler(range(samples), replicas, rank, num_repeats=repeats)
            sampler.set_epoch(3)
            assert [int(index) for index in sampler] == sampler_of_torchvision(order, rank, replicas, repeats, 256)


def test_a_state_continues_with_its_repetitions(small):
    def loader(**options):
        return shardtool.Loader(small, transform=CROP, batch_size=8, seed=2, output="numpy", workers=1, **options)

    whole = rows(loader(repeats=3))
    stopped = loader(repeats=3)
    for number, _ in enumerate(stopped):
        if number == 4:
            break
    state = stopped.state_dict()
    stopped.close()
    resumed = loader(repeats=3)
    resumed.load_state_dict(state)
    assert rows(resumed) == whole[40:]
    other = loader(repeats=2)
    other.load_state_dict(state)
    with pytest.raises(shardtool.StateError, match="saved with repeats 3, but repeats is 2 now"):
        next(iter(other))
    other.close()
    with pytest.raises(TypeError, match="repeats"):
        shardtool.Loader(small, aug_repeats=3)
