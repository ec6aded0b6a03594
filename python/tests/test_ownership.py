"""Batches that are kept, or requested ahead, keep their own samples; and a plain loop copies nothing."""

import gc
import json
import threading
from collections import deque

import numpy as np
import pytest
import torch
from PIL import Image

import shardtool
from datasets import pack

pytestmark = pytest.mark.usefixtures("lent_readers")

SAMPLES = 120
OPTIONS = {"batch_size": 8, "with_keys": True, "workers": 1, "seed": 3}


@pytest.fixture(scope="module")
def colours(tmp_path_factory):
    """120 images, each with one colour that encodes its number; a second image and a mask encode it, too."""
    folder = tmp_path_factory.mktemp("colours")
    for number in range(SAMPLES):
        stem = folder / "images" / f"class{number % 10}" / f"{number:03}"
        stem.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (16, 12), (number, number, number)).save(f"{stem}.png")
        Image.new("RGB", (16, 12), (number, 0, 200)).save(f"{stem}.right.png")
        Image.new("L", (16, 12), number).save(f"{stem}.seg.png")
        (stem.parent / f"{stem.name}.json").write_text(json.dumps({"number": number}))
    fields = [argument for name in ("json", "right.png", "seg.png") for argument in ("--fields", name)]
    return pack(folder / "images", folder / "shards", *fields)


def numbers(batch):
    return [int(key.rsplit("/", 1)[-1]) for key in batch.keys]


def shown(images):
    """The numbers that images of one colour each encode."""
    rows = [np.asarray(image) for image in images]
    firsts = [int(row.reshape(-1)[0]) for row in rows]
    assert all((row == first).all() for row, first in zip(rows, firsts))
    return firsts


def check(batch):
    """Checks that the batch contains its own samples."""
    assert shown(batch.images) == numbers(batch)
    assert [number % 10 for number in numbers(batch)] == np.asarray(batch.labels).tolist()


def loader_of(location, **options):
    return shardtool.Loader(location, **{**OPTIONS, **options})


@pytest.mark.parametrize("output", ["torch", "numpy"])
@pytest.mark.parametrize("prefetch_batches", [1, 2, 4])
def test_batches_that_are_kept_have_their_own_images(colours, output, prefetch_batches):
    with loader_of(colours, output=output, prefetch_batches=prefetch_batches) as loader:
        kept = [batch for _ in range(3) for batch in loader]
    assert len(kept) == 45
    for batch in kept:
        check(batch)


@pytest.mark.parametrize("ahead", range(1, 7))
def test_a_consumer_that_requests_batches_ahead_gets_each_batch_with_its_own_images(colours, ahead):
    queue = deque()
    with loader_of(colours, epochs_per_loop=4) as loader:
        for batch in loader:
            queue.append(batch)
            if len(queue) > ahead:
                check(queue.popleft())
    for batch in queue:
        check(batch)


def test_extra_images_and_masks_are_kept_with_their_batch(colours):
    options = {"image": "png", "extra_images": ["right.png"], "masks": ["seg.png"], "fields": ["json"]}
    with loader_of(colours, output="numpy", **options) as loader:
        # Only these are kept: each holds its memory alone.
        kept = [
            (numbers(batch), batch.extra_images["right.png"], batch.masks["seg.png"], batch.fields) for batch in loader
        ]
    for expected, right, mask, fields in kept:
        assert right[:, 0, 0, 0].tolist() == mask[:, 0, 0].tolist() == expected
        assert (right[..., 2] == 200).all()
        assert [value["number"] for value in fields["json"]] == expected


@pytest.mark.parametrize("options", [{"collate": "list"}, {"transform": "raw"}])
def test_lists_of_images_and_encoded_images_are_kept(colours, options):
    with loader_of(colours, output="numpy", **options) as loader:
        kept = list(loader)
    with loader_of(colours, output="numpy", **options) as loader:
        copies = [[bytes(image) for image in batch.images] for batch in loader]
    assert [[bytes(image) for image in batch.images] for batch in kept] == copies


def test_one_row_of_a_batch_is_kept(colours):
    with loader_of(colours, epochs_per_loop=3) as loader:
        rows = [(batch.images[5], numbers(batch)[5]) for batch in loader]
    assert shown([row for row, _ in rows]) == [number for _, number in rows]


def test_arrays_that_were_exchanged_by_dlpack_hold_their_memory(colours):
    for take in (torch.from_dlpack, np.from_dlpack):
        with loader_of(colours, output="dlpack", epochs_per_loop=2) as loader:
            kept = [(take(batch.images), numbers(batch)) for batch in loader]
        for images, expected in kept:
            assert shown(images) == expected


def test_a_dlpack_capsule_that_was_not_taken_yet_holds_its_memory(colours):
    with loader_of(colours, output="dlpack", epochs_per_loop=2) as loader:
        kept = [(batch.images.__dlpack__(), numbers(batch)) for batch in loader]
    for capsule, expected in kept:
        assert shown(torch.utils.dlpack.from_dlpack(capsule)) == expected


def addresses(loader):
    return [batch.images.data_ptr() for batch in loader]


def test_a_plain_loop_copies_no_batch(colours):
    with loader_of(colours, epochs_per_loop=4) as loader:
        start = loader._start()
        used = addresses(loader)
        memory = start.memory()
        assert all(memory.address <= address < memory.address + len(memory) for address in used)
        # Four batches are prepared ahead by default, and a loop still has one when it requests the next.
        assert len(set(used)) == 5


def test_with_reuse_a_batch_is_overwritten_when_the_next_one_is_requested(colours):
    with loader_of(colours, reuse=True, prefetch_batches=2) as loader:
        used = addresses(loader)
        assert len(set(used)) == 2
        loader.set_epoch(0)
        kept = list(loader)
        assert [shown(batch.images) == numbers(batch) for batch in kept].count(True) == 2


def test_memory_comes_back_without_a_run_of_the_garbage_collector(colours):
    gc.disable()
    try:
        with loader_of(colours) as loader:
            kept = list(loader)
            assert len(loader._held.numbers()) == 3
            del kept
            assert len(set(addresses(loader))) == 5
    finally:
        gc.enable()


def test_a_batch_of_a_loop_that_was_left_stays_in_the_loops_after_it(colours):
    with loader_of(colours) as loader:
        kept = [next(iter(loader)) for _ in range(6)]
        for batch in loader:
            check(batch)
        state = loader.state_dict()
        kept.append(batch)
        loader.load_state_dict(state)
        kept += loader
    for batch in kept:
        check(batch)


def test_a_batch_stays_when_a_bad_sample_has_ended_its_loop(tmp_path):
    for number in range(40):
        file = tmp_path / "images" / "a" / f"{number:02}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (16, 12), (number, number, number)).save(file)
    # One of the last four of the shard.
    damaged = file.with_name("29.png")
    damaged.write_bytes(damaged.read_bytes()[:60])
    location = pack(tmp_path / "images", tmp_path / "shards")
    kept = []
    transform = [{"name": "resize", "size": [12, 16]}]
    with loader_of(location, transform=transform, shuffle=False, batch_size=4) as loader:
        for _ in range(3):
            with pytest.raises(shardtool.BadSampleError):
                for batch in loader:
                    kept.append(batch)
    assert len(kept) == 27
    for batch in kept:
        assert shown(batch.images) == numbers(batch)


def test_states_are_right_when_batches_are_held(colours):
    with loader_of(colours) as loader:
        kept, states = [], []
        for batch in loader:
            kept.append(batch)
            states.append(loader.state_dict())
    for at in (0, 3, 9):
        with loader_of(colours) as loader:
            loader.load_state_dict(states[at])
            assert [batch.keys for batch in loader] == [batch.keys for batch in kept[at + 1 :]]


def test_batches_of_several_sizes_are_kept(photos):
    options = {
        "aspect_buckets": {"area": 128 * 128, "step": 32, "max_ratio": 2},
        "batch_size": 6,
        "workers": 1,
        "seed": 3,
    }
    with shardtool.Loader(photos, **options) as loader:
        kept = list(loader)
    with shardtool.Loader(photos, **options) as loader:
        copies = [batch.images.clone() for batch in loader]
    assert len({images.shape for images in copies}) > 1
    for batch, images in zip(kept, copies):
        assert torch.equal(batch.images, images)


def test_batches_of_a_mixture_are_kept(colours):
    mixture = shardtool.Mixture([{"dataset": colours, "weight": 0.75}, {"dataset": colours, "weight": 0.25}])
    with mixture.loader(**OPTIONS) as loader:
        kept = list(loader)
    for batch in kept:
        check(batch)


def test_a_data_loader_around_it_may_look_ahead(colours):
    dataset = shardtool.iterable_dataset(colours, **OPTIONS)
    kept = list(torch.utils.data.DataLoader(dataset, batch_size=None))
    dataset.close()
    for batch in kept:
        check(batch)


def test_threads_that_share_a_loop_get_each_batch_once_with_its_own_images(colours):
    with loader_of(colours, epochs_per_loop=4) as loader:
        batches = iter(loader)
        taken = [[] for _ in range(4)]
        threads = [threading.Thread(target=lambda mine=mine: mine.extend(batches)) for mine in taken]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    taken = [batch for mine in taken for batch in mine]
    assert sorted((batch.epoch, batch.batch_index) for batch in taken) == [(e, i) for e in range(4) for i in range(15)]
    for batch in taken:
        check(batch)


def test_threads_may_ask_a_loader_for_anything_while_it_loops(colours):
    with loader_of(colours, epochs_per_loop=4) as loader:
        asked = []

        def ask():
            for _ in range(20):
                asked.append((loader.info()["batch_size"], loader.report()["batches"] >= 0, len(loader)))

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        for batch in loader:
            check(batch)
        for thread in threads:
            thread.join()
    assert set(asked) == {(8, True, 60)}


class Pairs(torch.utils.data.IterableDataset):
    """Images and labels as frameworks require them."""

    def __init__(self, loader):
        self._loader = loader

    def __iter__(self):
        for batch in self._loader:
            yield batch.images, batch.labels


def test_jax_holds_the_memory_that_it_works_on_later(colours):
    jax = pytest.importorskip("jax", reason="jax is not installed")
    takes = [jax.numpy.asarray, jax.device_put, lambda images: jax.numpy.array(images, copy=True)]
    for take in [*takes, jax.dlpack.from_dlpack]:
        output = "dlpack" if take is jax.dlpack.from_dlpack else "numpy"
        kept = []
        with loader_of(colours, output=output, epochs_per_loop=3) as loader:
            for batch in loader:
                images = take(batch.images)
                kept.append((images, images * 1, numbers(batch)))
        for images, computed, expected in kept:
            assert shown(images) == shown(computed) == expected


@pytest.mark.parametrize("dispatch_batches", [None, False, True])
def test_accelerate_looks_a_batch_ahead(colours, dispatch_batches):
    accelerate = pytest.importorskip("accelerate", reason="accelerate is not installed")
    configuration = accelerate.utils.DataLoaderConfiguration(dispatch_batches=dispatch_batches)
    accelerator = accelerate.Accelerator(cpu=True, dataloader_config=configuration)
    with loader_of(colours) as loader:
        prepared = accelerator.prepare(torch.utils.data.DataLoader(Pairs(loader), batch_size=None))
        kept = list(prepared)
    for images, labels in kept:
        assert [number % 10 for number in shown(images.cpu())] == labels.tolist()
    assert sum(len(labels) for _, labels in kept) == SAMPLES
