"""Samples from a program, written with Python; and the installed command line tool."""

import io
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import shardtool
from datasets import CHECKOUT, children, run_node
from shardtool.bridge import frames, reader_process
from signals import interrupted_at

JPEG = Path(CHECKOUT / "examples/photos/cat/cat_000.jpg").read_bytes()


def picture(seed):
    return np.random.default_rng(seed).integers(0, 256, (20, 30, 3), dtype=np.uint8)


def verify(folder):
    run_node("packages/cli/lib/main.js", "verify", folder, "--check", "decode")


def test_added_samples_are_read_back_in_order(tmp_path):
    mask = io.BytesIO()
    Image.fromarray(np.full((20, 30), 7, np.uint8)).save(mask, "PNG")
    before = children()
    with shardtool.Writer(tmp_path / "out", classes=["cat", "dog"], columns={"score": "double"}) as writer:
        writer.add("cat/1", JPEG, label="cat", json={"age": 3}, columns={"score": np.float32(0.5)})
        writer.add("dog/1", picture(1), label=np.int64(1), **{"seg.png": mask.getvalue(), "__proto__": b"\0\1"})
        writer.add("dog/2", Image.fromarray(picture(2)), label=1, npy=np.arange(6.0).reshape(2, 3), count=4)
    assert writer.report["samples"] == 3
    assert children() == before
    verify(tmp_path / "out")
    with shardtool.Dataset(tmp_path / "out", output="numpy", fields=["json", "score"], transform=None) as dataset:
        assert [sample.key for sample in dataset] == ["cat/1", "dog/1", "dog/2"]
        assert dataset.labels.tolist() == [0, 1, 1]
        assert dataset[0].fields == {"json": {"age": 3}, "score": 0.5}
        assert dataset.raw(0)["jpg"] == JPEG
        assert np.array_equal(dataset[1].image, picture(1))
        assert dataset.raw(1)["seg.png"] == mask.getvalue()
        assert dataset.raw(1)["__proto__"] == b"\0\1"
        assert dataset.raw(2)["npy"].tolist() == [[0, 1, 2], [3, 4, 5]]
        assert dataset.raw(2)["count"] == 4


def test_large_integers_keep_their_digits_and_nan_is_a_missing_value(tmp_path):
    large = 1234567890123456789
    with shardtool.Writer(tmp_path / "out", columns={"v": "double"}) as writer:
        writer.add("a", JPEG, json={"id": large}, columns={"v": float("nan")})
    with shardtool.Dataset(tmp_path / "out", output="numpy", fields=["json", "v"], transform=None) as dataset:
        assert dataset[0].fields == {"json": {"id": large}, "v": None}
        assert dataset.raw(0)["json"] == {"id": large}


def test_infinite_numbers_of_a_table_come_as_they_are(tmp_path):
    (tmp_path / "in").mkdir()
    for name in "ab":
        (tmp_path / "in" / f"{name}.jpg").write_bytes(JPEG)
    (tmp_path / "labels.csv").write_text("path,v\na.jpg,-inf\nb.jpg,0.5\n")
    run_node("packages/cli/lib/main.js", "pack", tmp_path / "in", tmp_path / "out", "--labels", tmp_path / "labels.csv")
    with shardtool.Dataset(tmp_path / "out", output="numpy", fields=["v"], transform=None) as dataset:
        assert sorted(sample.fields["v"] for sample in dataset) == [float("-inf"), 0.5]


@pytest.mark.parametrize("image_format", ["png", "webp", "npy"])
def test_arrays_are_stored_without_loss(tmp_path, image_format):
    with shardtool.Writer(tmp_path / "out", image_format=image_format, format="msgpack") as writer:
        writer.add("a", picture(3))
        writer.add("gray", picture(4)[:, :, 0])
    with shardtool.Dataset(tmp_path / "out", output="numpy") as dataset:
        assert np.array_equal(dataset[0].image, picture(3))
        assert np.array_equal(dataset[1].image[:, :, 2], picture(4)[:, :, 0])


def test_a_part_is_text_in_python(tmp_path):
    for wrong in ("5/4", "0/4", 3, {"index": 0, "of": 2}):
        with pytest.raises(shardtool.OptionError, match=r'from "1/16" to "16/16", or "auto", not'):
            shardtool.Writer(tmp_path / "out", part=wrong)


def test_parts_of_several_writers_are_one_dataset_when_the_last_of_them_ends(tmp_path):
    reports = []
    for part in ("3/3", "1/3", "2/3"):
        with shardtool.Writer(tmp_path / "out", part=part, image_format="npy") as writer:
            writer.add(f"key/{part[0]}", picture(int(part[0])))
        reports.append((writer.report["isCommitted"], writer.report["pendingParts"]))
        if part == "1/3":
            with pytest.raises(shardtool.ShardtoolError, match=r"Part 1/3 of .* is finished"):
                shardtool.Writer(tmp_path / "out", part=part)
    assert reports == [(False, ["1/3", "2/3"]), (False, ["2/3"]), (True, [])]
    with shardtool.Dataset(tmp_path / "out", output="numpy") as dataset:
        assert [sample.key for sample in dataset] == ["key/1", "key/2", "key/3"]


def test_a_folder_that_contains_a_dataset_is_an_error_when_the_writer_is_made(tmp_path):
    with shardtool.Writer(tmp_path / "out") as writer:
        writer.add("a", JPEG)
    with pytest.raises(shardtool.ShardtoolError, match=r'already contains a dataset; .* "overwrite"[.]$'):
        shardtool.Writer(tmp_path / "out")
    with shardtool.Writer(tmp_path / "out", overwrite=True) as writer:
        writer.add("b", JPEG)
    assert writer.report["samples"] == 1


def test_a_sample_that_cannot_be_taken_is_an_error_of_its_own(tmp_path):
    with shardtool.Writer(tmp_path / "out", classes=["cat"]) as writer:
        writer.add("a", JPEG, label="cat")
        with pytest.raises(shardtool.OptionError, match='"dog"'):
            writer.add("b", JPEG, label="dog")
        with pytest.raises(shardtool.OptionError, match='did you mean "cat"'):
            writer.add("b", JPEG, label="cats")
        with pytest.raises(shardtool.OptionError, match='give the class as "label"'):
            writer.add("b", JPEG, cls=0)
        with pytest.raises(shardtool.ShardtoolError, match="was already written") as error:
            writer.add("a", JPEG)
        assert error.value.key == "a"
        with pytest.raises(shardtool.ShardtoolError, match="is not an image"):
            writer.add("c", jpg=b"text")
        with pytest.raises(shardtool.OptionError, match=r"sample .* is not a jpg"):
            writer.add("c", b"text")
        with pytest.raises(shardtool.OptionError, match="uint8"):
            writer.add("c", np.zeros((2, 2, 3)))
        with pytest.raises(TypeError):
            writer.add("c", JPEG, json=object())
        writer.add("d", JPEG)
    with shardtool.Dataset(tmp_path / "out", output="numpy") as dataset:
        assert [sample.key for sample in dataset] == ["a", "d"]


def test_a_key_that_is_no_text_is_an_error_of_its_own(tmp_path):
    with shardtool.Writer(tmp_path / "out") as writer:
        writer.add("a", JPEG)
        for key in (5, None, b"c", np.int64(3)):
            with pytest.raises(TypeError, match="key of a sample must be a str, not .*" + type(key).__name__):
                writer.add(key, JPEG)
        writer.add("d", JPEG)
    assert writer.report["samples"] == 2


def test_a_value_that_no_column_or_field_can_hold_is_an_error_of_its_own(tmp_path):
    with shardtool.Writer(tmp_path / "out", columns={"score": "double"}) as writer:
        writer.add("a", JPEG)
        with pytest.raises(shardtool.OptionError, match='column "score", whose type is double'):
            writer.add("b", JPEG, columns={"score": [1]})
        with pytest.raises(TypeError, match="column called 5"):
            writer.add("b", JPEG, columns={5: 1})
        with pytest.raises(TypeError, match='"b" has a value of "json"'):
            writer.add("b", JPEG, json={"n": np.int64(3)})
        with pytest.raises(ValueError, match='"b" has a value of "json"'):
            writer.add("b", JPEG, json=float("nan"))
        writer.add("d", JPEG)
    assert writer.report["samples"] == 2


def test_leaving_by_an_error_makes_no_dataset(tmp_path):
    with pytest.raises(ZeroDivisionError), shardtool.Writer(tmp_path / "out") as writer:
        writer.add("a", JPEG)
        raise ZeroDivisionError
    with pytest.raises(shardtool.UnfinishedPackError):
        len(shardtool.Dataset(tmp_path / "out"))
    with (
        pytest.raises(shardtool.ShardtoolError, match="contains an unfinished pack"),
        shardtool.Writer(tmp_path / "out") as writer,
    ):
        writer.add("a", JPEG)
    with shardtool.Writer(tmp_path / "out", overwrite=True) as writer:
        writer.add("a", JPEG)
    assert len(shardtool.Dataset(tmp_path / "out", output="numpy")) == 1
    with pytest.raises(shardtool.StaleIteratorError):
        writer.add("b", JPEG)


def test_wrong_options_are_errors_at_once(tmp_path):
    with pytest.raises(TypeError, match="max_shard_size"):
        shardtool.Writer(tmp_path / "out", max_shard_size=3)
    with pytest.raises(shardtool.OptionError, match="format"):
        shardtool.Writer(tmp_path / "out", format="zip")
    with pytest.raises(shardtool.OptionError, match='"max_shard_bytes" is invalid'):
        shardtool.Writer(tmp_path / "out", max_shard_bytes="64 sheep")
    assert list(tmp_path.iterdir()) == []


def test_the_command_line_tool_is_installed(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT / "python" / "src")}
    command = [sys.executable, "-m", "shardtool"]
    done = subprocess.run(
        [*command, "pack", CHECKOUT / "examples/photos", tmp_path / "shards", "--quiet"], env=environment, timeout=120
    )
    assert done.returncode == 0
    assert len(shardtool.Dataset(tmp_path / "shards", output="numpy")) == 60
    wrong = subprocess.run([*command, "ls", tmp_path / "none"], env=environment, capture_output=True, timeout=60)
    assert wrong.returncode == 2


def test_an_interrupt_at_any_moment_of_an_add_leaves_the_writer_usable(tmp_path):
    before = children()
    moments = 0
    with shardtool.Writer(tmp_path / "out", classes=["a"]) as writer:
        for moment in range(1000):
            with interrupted_at(moment, reader_process, frames) as interrupted:
                writer.add(f"interrupted/{moment}", JPEG, label="a")
            if not interrupted:
                break
            moments += 1
            writer.add(f"after/{moment}", JPEG, label="a")
    assert moments > 20
    assert children() == before
    with shardtool.Dataset(tmp_path / "out", transform="raw") as dataset:
        keys = [sample.key for sample in dataset]
        assert all(sample.image == JPEG for sample in dataset)
    assert [key for key in keys if key.startswith("after/")] == [f"after/{moment}" for moment in range(moments)]
    # The first ones were interrupted before anything was sent, the last ones when the sample was written.
    assert f"interrupted/{moments}" in keys
    assert "interrupted/0" not in keys


def test_threads_share_a_writer(tmp_path):
    with shardtool.Writer(tmp_path / "out", classes=["a"]) as writer:

        def add(which):
            for number in range(40):
                writer.add(f"{which}/{number}", JPEG, label="a")

        threads = [threading.Thread(target=add, args=(which,)) for which in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert writer.report["samples"] == 120
    verify(tmp_path / "out")


def test_storage_options_apply_to_a_bucket_and_their_names_are_checked(tmp_path):
    with pytest.raises(TypeError, match="storage has no option 'endpoint'"):
        shardtool.Writer(tmp_path / "out", storage={"endpoint": "http://127.0.0.1:9"})
    with pytest.raises(shardtool.OptionError, match="The endpoint of S3 is invalid"):
        shardtool.Writer("s3://b/out", storage={"endpoint_url": "127.0.0.1:9"}).add("a", JPEG)


def test_part_auto_writes_the_part_that_each_job_of_the_page_defines(tmp_path, monkeypatch):
    rows = re.findall(r"^\| .*? \| (`[A-Z].*?) \|$", (CHECKOUT / "docs/pack-large.md").read_text(), re.MULTILINE)
    jobs = [re.findall(r"`(\w+)`", row) for row in rows]
    assert len(jobs) == 8
    for part, (index, count, *more) in enumerate(jobs):
        with monkeypatch.context() as environment:
            environment.setenv(index, str(part))
            environment.setenv(count, "8")
            if more:
                # The array of Slurm has the numbers 10, 13, ..., 31.
                for name, value in zip((index, *more), (10 + 3 * part, 10, 3)):
                    environment.setenv(name, str(value))
            with shardtool.Writer(tmp_path / "out", part="auto", image_format="npy") as writer:
                writer.add(index, picture(part))
    assert writer.report["isCommitted"]
    with shardtool.Dataset(tmp_path / "out", output="numpy") as dataset:
        assert [sample.key for sample in dataset] == [index for index, *_ in jobs]
        assert [(sample.image == picture(part)).all() for part, sample in enumerate(dataset)] == [True] * 8
    with pytest.raises(shardtool.OptionError, match="no environment variable defines a part"):
        shardtool.Writer(tmp_path / "other", part="auto").add("a", JPEG)
