"""Ray Data reads and writes shards: workers are killed, tasks repeated, a node lost. See engines-requirements.txt."""

import os
import signal
import threading
import time
import zlib
from pathlib import Path

import numpy as np
import pytest

import shardtool
from datasets import CHECKOUT, run_page

pytestmark = [pytest.mark.long, pytest.mark.time_limit(600)]
ray = pytest.importorskip("ray")

JPEG = Path(CHECKOUT / "examples/photos/cat/cat_000.jpg").read_bytes()
ROWS = 48


def image(number):
    return JPEG + number.to_bytes(4, "big")


def rows():
    return [{"key": f"k/{number:03d}", "image": image(number), "label": number % 2} for number in range(ROWS)]


EXPECTED = {f"k/{number:03d}": (zlib.crc32(image(number)), number % 2) for number in range(ROWS)}


def stored(folder):
    """Checksum of the image and class of each sample, by key."""
    with shardtool.Dataset(folder, transform="raw", output="numpy") as dataset:
        assert len(dataset) == len({sample.key for sample in dataset})
        return {sample.key: (zlib.crc32(sample.image), sample.label) for sample in dataset}


def started_cluster(kind):
    """A cluster of two nodes. Ray gives a node 30 s to start, which a busy machine may exceed: start again then."""
    for attempt in range(5):
        made = kind()
        try:
            for _ in range(2):
                made.add_node(num_cpus=1, object_store_memory=200_000_000)
            return made
        except Exception:
            made.shutdown()
            if attempt == 4:
                raise
    raise AssertionError


@pytest.fixture(scope="module")
def cluster():
    """Two nodes; a test may remove the second one."""
    from ray.cluster_utils import Cluster

    os.environ["PYTHONPATH"] = os.pathsep.join((str(CHECKOUT / "python/src"), str(CHECKOUT / "python/tests")))
    made = started_cluster(Cluster)
    ray.init(address=made.address, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield made
    ray.shutdown()
    made.shutdown()


def write(sink, spoil=None, blocks=6):
    data = ray.data.from_items(rows(), override_num_blocks=blocks)
    if spoil is not None:
        data = data.map(spoil)
    data.write_datasink(sink)


def killed_once(marker, key):
    """A map that kills its worker the first time that it sees `key`."""

    def spoil(row):
        if row["key"] == key:
            try:
                Path(marker).touch(exist_ok=False)
            except FileExistsError:
                return row
            os.kill(os.getpid(), signal.SIGKILL)
        return row

    return spoil


def test_rows_are_written_and_read_again_in_any_number_of_blocks(cluster, tmp_path):
    from shardtool.ray import ShardDatasink, ShardDatasource

    sink = ShardDatasink(tmp_path / "out", classes=["even", "odd"], max_shard_samples=5)
    write(sink)
    assert sink.report["samples"] == ROWS
    assert stored(tmp_path / "out") == EXPECTED
    for blocks in (1, 3, 40):
        data = ray.data.read_datasource(ShardDatasource(tmp_path / "out"), override_num_blocks=blocks)
        read = data.take_all()
        assert len(read) == ROWS
        assert {row["key"]: (zlib.crc32(row["image"]), row["label"]) for row in read} == EXPECTED
    pixels = ray.data.read_datasource(ShardDatasource(tmp_path / "out", transform="eval224"))
    assert pixels.take(1)[0]["image"].shape == (224, 224, 3)
    shards = [iterator.iter_batches(batch_size=7) for iterator in pixels.streaming_split(2, equal=False)]
    seen = ray.get([keys_of.remote(shard) for shard in shards])
    assert sorted(seen[0] + seen[1]) == sorted(EXPECTED)


@ray.remote(num_cpus=0)
def keys_of(batches):
    return [key for batch in batches for key in batch["key"]]


def test_a_worker_that_is_killed_while_it_writes_loses_and_doubles_nothing(cluster, tmp_path):
    from shardtool.ray import ShardDatasink

    for key in ("k/000", "k/021", "k/047"):
        out = tmp_path / key.replace("/", "-")
        marker = tmp_path / f"{out.name}.killed"
        write(ShardDatasink(out, max_shard_samples=3), killed_once(marker, key))
        assert marker.exists()
        assert stored(out) == EXPECTED


def test_a_row_that_fails_leaves_no_dataset_and_no_file(cluster, tmp_path):
    from shardtool.ray import ShardDatasink

    def spoil(row):
        if row["key"] == "k/030":
            raise ValueError("spoiled")
        return row

    with pytest.raises(Exception, match="spoiled"):
        write(ShardDatasink(tmp_path / "out"), spoil)
    left = tmp_path / "out"
    assert not left.exists() or not [file for file in left.iterdir() if ".tar" in file.name or ".json" in file.name]
    write(ShardDatasink(tmp_path / "out"))
    with pytest.raises(Exception, match="already contains a dataset"):
        write(ShardDatasink(tmp_path / "out"))
    assert stored(tmp_path / "out") == EXPECTED
    with pytest.raises(Exception, match="'more' of the table would not be written"):
        write(ShardDatasink(tmp_path / "other"), lambda row: {**row, "more": 1})


def test_a_node_that_is_lost_while_it_writes_loses_and_doubles_nothing(cluster, tmp_path):
    from shardtool.ray import ShardDatasink

    lost = cluster.add_node(num_cpus=1, resources={"lost": 1}, object_store_memory=200_000_000)
    (name,) = [node["NodeID"] for node in ray.nodes() if node["Alive"] and "lost" in node["Resources"]]
    reached, go_on = tmp_path / "reached", tmp_path / "go-on"
    reached.mkdir()

    def spoil(row):
        (reached / ray.get_runtime_context().get_node_id()).touch()
        while not go_on.exists():
            time.sleep(0.05)
        return row

    def end():
        while not (reached / name).exists():
            time.sleep(0.05)
        cluster.remove_node(lost, allow_graceful=False)
        go_on.touch()

    thread = threading.Thread(target=end)
    thread.start()
    write(ShardDatasink(tmp_path / "out", max_shard_samples=3), spoil, blocks=12)
    thread.join()
    assert stored(tmp_path / "out") == EXPECTED


def test_arrays_are_written_as_images(cluster, tmp_path):
    from shardtool.ray import ShardDatasink

    pixels = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
    data = ray.data.from_numpy(np.stack([pixels, 255 - pixels])).repartition(1)
    data = data.map_batches(lambda batch: {**batch, "key": np.array(["a", "b"])})
    data.write_datasink(ShardDatasink(tmp_path / "out", image="data", image_format="npy"))
    with shardtool.Dataset(tmp_path / "out", output="numpy") as dataset:
        assert len(dataset) == 2
        assert np.array_equal(dataset["a"].image, pixels)


def test_the_examples_of_the_page_run(cluster, tmp_path, photos):
    run_page("docs/use-with-ray.md", tmp_path, photos)
    assert len(stored(tmp_path / "from-ray")) == 60
