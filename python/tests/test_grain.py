"""Grain and JAX read shards. See engines-requirements.txt."""

import json
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from ports import held_port

from datasets import pack, run_page, small_images

pytestmark = [pytest.mark.long, pytest.mark.time_limit(300)]
grain = pytest.importorskip("grain")


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("grain")
    small_images(folder / "images", 40)
    return pack(folder / "images", folder / "shards", "--max-shard-samples", "7")


def pipeline(source, seed=42):
    return grain.MapDataset.source(source).seed(seed).shuffle().batch(6)


def keys(batches):
    return [key for batch in batches for key in batch["key"]]


def test_the_source_gives_each_sample_with_its_own_pixels_and_label(shards):
    import shardtool
    from shardtool.grain import ShardSource

    source = ShardSource(shards)
    with shardtool.Dataset(shards, output="numpy") as dataset:
        assert len(source) == len(dataset) == 40
        for index in (0, 17, 39):
            sample, expected = source[np.int64(index)], dataset[index]
            assert sample["key"] == expected.key and sample["label"] == expected.label
            assert np.array_equal(sample["image"], expected.image)
    with pytest.raises(IndexError):
        source[40]
    with pytest.raises(TypeError, match="remove output"):
        ShardSource(shards, output="torch")


def test_each_epoch_has_each_sample_once_and_epochs_differ(shards):
    from shardtool.grain import ShardSource

    source = ShardSource(shards)
    shuffled = grain.MapDataset.source(source).seed(1).shuffle().repeat(2).map(lambda sample: sample["key"])
    both = list(shuffled)
    assert sorted(both[:40]) == sorted(both[40:]) == sorted(set(both))
    assert both[:40] != both[40:]
    # Grain gives each process every second sample.
    of_ranks = [list(shuffled[rank::2]) for rank in range(2)]
    assert [len(part) for part in of_ranks] == [40, 40] and sorted(of_ranks[0] + of_ranks[1]) == sorted(both)


def test_a_resumed_loop_equals_an_uninterrupted_one_in_threads_and_processes(shards):
    from shardtool.grain import ShardSource

    # Programs that run with absl.app have parsed the flags that Grain's worker processes read.
    flags = pytest.importorskip("absl.flags")
    flags.FLAGS.mark_as_parsed()
    source = ShardSource(shards)
    whole = list(pipeline(source).to_iter_dataset())
    assert len(set(keys(whole))) == 40
    for workers in (0, 2):
        made = pipeline(source).to_iter_dataset()
        if workers > 0:
            made = made.mp_prefetch(grain.MultiprocessingOptions(num_workers=workers))
        iterator = iter(made)
        first = [next(iterator) for _ in range(3)]
        state = iterator.get_state()
        rest = list(iterator)
        resumed = iter(made)
        resumed.set_state(state)
        again = list(resumed)
        assert keys(again) == keys(rest)
        assert all(np.array_equal(a["image"], b["image"]) for a, b in zip(again, rest))
        assert sorted(keys(first + rest)) == sorted(keys(whole))


def test_a_pickled_source_and_threads_give_the_same_samples(shards):
    from shardtool.grain import ShardSource

    source = pickle.loads(pickle.dumps(ShardSource(shards)))
    expected = [source[index]["key"] for index in range(40)]
    found = {}

    def read(start):
        for index in range(start, 40, 4):
            found[index] = source[index]["key"]

    threads = [threading.Thread(target=read, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[index] for index in range(40)] == expected


def test_jax_gets_batches_without_a_copy_and_keeps_their_pixels(shards):
    jax = pytest.importorskip("jax")
    import shardtool

    def load():
        return shardtool.Loader(shards, batch_size=5, transform="train224", output="numpy", seed=3, prefetch_batches=2)

    # A loop that keeps nothing: each batch is used immediately.
    with load() as loader:
        for images, _ in loader:
            for array in (jax.device_put(images), jax.numpy.from_dlpack(images)):
                assert array.unsafe_buffer_pointer() == images.ctypes.data
    # The loop never waits for JAX, and all arrays are kept: memory that is still in use must not be written again.
    with load() as loader:
        kept = []
        for images, labels in loader:
            kept.append((jax.device_put(images), jax.numpy.from_dlpack(images), labels.copy()))
    with load() as loader:
        for (images, labels), (array, dlpack, kept_labels) in zip(loader, kept):
            assert np.array_equal(np.asarray(array), images)
            assert np.array_equal(np.asarray(dlpack), images)
            assert np.array_equal(labels, kept_labels)


PROCESS_OF_JAX = """
import json, sys
import jax
import shardtool
shards, coordinator, rank = sys.argv[1:]
jax.distributed.initialize(coordinator, num_processes=2, process_id=int(rank))
with shardtool.Loader(shards, batch_size=5, output="numpy", with_keys=True) as loader:
    keys = [key for batch in loader for key, valid in zip(batch.keys, batch.valid.tolist()) if valid]
    print(json.dumps(keys))
"""


def test_two_processes_of_jax_share_an_epoch(shards):
    pytest.importorskip("jax")
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    with held_port() as port:
        command = [sys.executable, "-c", PROCESS_OF_JAX, str(shards), f"127.0.0.1:{port}"]
        processes = [
            subprocess.Popen([*command, str(rank)], env=environment, stdout=subprocess.PIPE, text=True)
            for rank in range(2)
        ]
        ranks = [json.loads(process.communicate()[0].splitlines()[-1]) for process in processes]
    assert len(ranks[0]) == len(ranks[1]) == 20
    assert len({*ranks[0], *ranks[1]}) == 40


def test_the_examples_of_the_page_run(tmp_path, photos):
    pytest.importorskip("jax")
    run_page("docs/use-with-grain.md", tmp_path, photos)
