"""Random draws of a transform for single samples: different each time, and repeatable if torch is seeded."""

import multiprocessing
import zlib
from enum import Enum

import pytest
import torch
from torch.utils.data import DataLoader, Subset, WeightedRandomSampler

import shardtool
from datasets import python_lines

TRANSFORM = [{"name": "random_resized_crop", "size": 24}, {"name": "random_horizontal_flip"}]


class InterpolationMode(Enum):
    """Like torchvision's, which these tests do not need."""

    BICUBIC = "bicubic"


@pytest.fixture(scope="module")
def dataset(small):
    with shardtool.Dataset(small, transform=TRANSFORM) as opened:
        yield opened[:24]


def crcs(images):
    return [zlib.crc32(image.contiguous().numpy()) for image in images]


def epochs_of(loader, epochs=2):
    """The images of each epoch, in the order of delivery."""
    return [[crc for images, _ in loader for crc in crcs(images)] for _ in range(epochs)]


def assert_all_differ(epochs):
    for images in zip(*epochs):
        assert len(set(images)) == len(epochs)


LOADERS = {
    "in this process": {},
    "forked for each epoch": {"num_workers": 1, "multiprocessing_context": "fork"},
    "forked once": {"num_workers": 2, "multiprocessing_context": "fork", "persistent_workers": True},
    "spawned once": {"num_workers": 1, "multiprocessing_context": "spawn", "persistent_workers": True},
}


@pytest.mark.parametrize("how", LOADERS.values(), ids=LOADERS.keys())
def test_epochs_differ_without_set_epoch(dataset, how):
    assert_all_differ(epochs_of(DataLoader(dataset, batch_size=8, **how)))


@pytest.mark.parametrize("how", [LOADERS["in this process"], LOADERS["forked once"]])
def test_epochs_differ_if_a_framework_sets_the_epoch_before_its_workers_start_and_never_again(small, how):
    with shardtool.Dataset(small, transform=TRANSFORM) as dataset:
        dataset.set_epoch(0)
        assert_all_differ(epochs_of(DataLoader(dataset[:24], batch_size=8, **how)))


@pytest.mark.parametrize("workers", [0, 1])
def test_a_subset_of_a_part_draws_new_numbers_too(dataset, workers):
    assert_all_differ(epochs_of(DataLoader(Subset(dataset[4:20], range(8)), batch_size=4, num_workers=workers)))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_sample_that_is_repeated_within_an_epoch_draws_new_numbers(dataset, workers):
    sampler = WeightedRandomSampler([1.0] + [0.0] * 23, 40)
    [images] = epochs_of(DataLoader(dataset, batch_size=8, sampler=sampler, num_workers=workers), epochs=1)
    assert len(set(images)) == 40
    first = dataset[0].index
    again = dataset[[first, first, first]]
    assert len({*crcs(image for image, _ in again)}) == 3


@pytest.mark.parametrize("how", [LOADERS["in this process"], LOADERS["forked for each epoch"]])
def test_a_seeded_run_is_the_same_again(dataset, how):
    def run(seed, **more):
        torch.manual_seed(seed)
        return epochs_of(DataLoader(dataset, batch_size=8, shuffle=True, **how, **more), epochs=1)

    first = run(1)
    assert run(1) == first != run(2)
    if how:
        # Workers are seeded by the generator of the DataLoader.
        seeded = [run(number, generator=torch.Generator().manual_seed(7)) for number in (1, 2)]
        assert seeded[0] == seeded[1]


@pytest.mark.usefixtures("lent_readers")
def test_another_seed_of_the_dataset_draws_other_numbers(small):
    images = []
    for seed in (0, 1, 1):
        torch.manual_seed(0)
        with shardtool.Dataset(small, transform=TRANSFORM, seed=seed) as dataset:
            images.append(crcs(image for image, _ in dataset[:8]))
    assert images[0] != images[1] == images[2]


@pytest.mark.usefixtures("lent_readers")
def test_after_set_epoch_samples_and_their_repeats_are_those_of_a_loader(small):
    order = [5, 9, 5, 5, 9, 2]
    options = {"transform": TRANSFORM, "seed": 3}
    with shardtool.Loader(small, indices=order, epoch=4, batch_size=6, **options) as loader:
        wanted = crcs(next(iter(loader)).images)
    with shardtool.Dataset(small, **options) as dataset:
        dataset.set_epoch(4)
        assert crcs(dataset[number].image for number in order) == wanted
        dataset.set_epoch(4)
        assert crcs(image for image, _ in dataset[order]) == wanted


WITHOUT_TORCH = """
import sys, zlib
import shardtool
with shardtool.Dataset(sys.argv[1], output="numpy", transform="train224", seed=int(sys.argv[2])) as dataset:
    print([zlib.crc32(dataset[number].image) for number in (1, 2, 1, 1)])
assert "torch" not in sys.modules
"""


def test_without_torch_a_program_draws_the_same_each_time_that_it_runs(small, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(WITHOUT_TORCH)
    first, again, other = (python_lines(program, small, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert len(set(first[0].split(","))) == 4


def test_draws_in_a_pool_of_processes_differ_from_sample_to_sample(dataset):
    with multiprocessing.get_context("fork").Pool(1) as pool:
        images = pool.map(dataset.__getitem__, [0, 0, 0])
    assert len({*crcs(image for image, _ in images)}) == 3


def test_steps_within_steps_take_the_names_of_python_and_of_torchvision(small):
    resize = {"size": [20, 20], "interpolation": InterpolationMode.BICUBIC}
    spelled = (
        [
            {
                "name": "randomApply",
                "p": 1,
                "transforms": [[{"name": "resize", **resize}, {"name": "randomInvert", "p": 1}]],
            }
        ],
        [
            {
                "name": "random_apply",
                "p": 1,
                "transforms": ({"name": "Resize", **resize}, {"name": "RandomInvert", "p": 1}),
            }
        ],
    )
    images = []
    for transform in spelled:
        with shardtool.Dataset(small, transform=transform) as dataset:
            images.append(crcs([dataset[i][0] for i in range(4)]))
    assert images[0] == images[1]
