"""One dataset that tasks of a distributed engine write: tasks are killed, repeated and run twice at the same time."""

import pickle
import signal
import subprocess
import sys
import tarfile
import zlib
from pathlib import Path

import pytest

import shardtool
from datasets import CHECKOUT
from shardtool.parts import PartWriter

JPEG = Path(CHECKOUT / "examples/photos/cat/cat_000.jpg").read_bytes()

# Runs task `part` of a pickled job; "stop" waits before sample 3 until it is killed, and reports that.
TASK = """
import pickle, sys, time
from pathlib import Path
job = pickle.loads(Path(sys.argv[1]).read_bytes())
part, how, jpeg = int(sys.argv[2]), sys.argv[3], Path(sys.argv[4]).read_bytes()
def samples():
    for i in range(5):
        if how == "stop" and i == 3:
            print("stopped", flush=True)
            while True:
                time.sleep(60)
        yield {"key": f"p{part}/{i}", "image": jpeg + bytes([part, i]), "label": i % 2, "json": {"i": i}}
print(job.write(part, samples())["samples"], flush=True)
"""


def start(tmp_path, job, part, how="run"):
    pickled = tmp_path / "job.pickle"
    pickled.write_bytes(pickle.dumps(job))
    photo = str(CHECKOUT / "examples/photos/cat/cat_000.jpg")
    arguments = [sys.executable, "-c", TASK, str(pickled), str(part), how, photo]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=environment())


def environment():
    import os

    return {**os.environ, "PYTHONPATH": str(CHECKOUT / "python/src")}


def sample(part, i):
    return {"key": f"p{part}/{i}", "image": JPEG + bytes([part, i]), "label": i % 2, "json": {"i": i}}


def stored(folder):
    """Checksums of the images by key, read by Python's tarfile; a repeated key is an error."""
    found = {}
    for tar in sorted(Path(folder).glob("*.tar")):
        with tarfile.open(tar) as file:
            for member in file:
                if member.name.endswith(".jpg"):
                    assert member.name not in found
                    found[member.name] = zlib.crc32(file.extractfile(member).read())
    return found


def expected(parts):
    return {f"p{part}/{i}.jpg": zlib.crc32(JPEG + bytes([part, i])) for part in parts for i in range(5)}


def test_tasks_that_are_killed_and_repeated_lose_and_double_nothing(tmp_path):
    job = PartWriter(tmp_path / "out", max_shard_samples=2)
    job.plan()
    killed = start(tmp_path, job, 1, "stop")
    assert killed.stdout.readline() == "stopped\n"
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    with pytest.raises(shardtool.ShardtoolError, match="its pack did not finish"):
        shardtool.Dataset(tmp_path / "out").classes  # noqa: B018
    reports = [job.write(part, (sample(part, i) for i in range(5))) for part in (2, 0)]
    with pytest.raises(shardtool.ShardtoolError, match=r"2/\* did not end"):
        job.commit([*reports, {"part": 1, "samples": 5}])
    again = start(tmp_path, job, 1)
    assert again.communicate()[0] == "5\n"
    reports.append({"part": 1, "samples": 5})
    assert job.commit(reports)["samples"] == 15
    assert stored(tmp_path / "out") == expected(range(3))
    with shardtool.Dataset(tmp_path / "out", output="numpy") as dataset:
        assert len(dataset) == 15


def test_a_task_that_runs_twice_at_the_same_time_writes_its_part_once(tmp_path):
    job = PartWriter(tmp_path / "out")
    job.plan()
    first = start(tmp_path, job, 0, "stop")
    assert first.stdout.readline() == "stopped\n"
    second = start(tmp_path, job, 0)
    first.send_signal(signal.SIGKILL)
    assert second.communicate()[0] == "5\n"
    # The task is finished, so a further attempt changes nothing, and needs no samples.
    assert job.write(0, [sample(9, 9)]) == {"part": 0, "samples": None, "bytes": None}
    job.commit([{"part": 0, "samples": 5}])
    assert stored(tmp_path / "out") == expected([0])


def test_reports_that_do_not_fit_the_parts_are_no_dataset(tmp_path):
    job = PartWriter(tmp_path / "out")
    job.plan()
    reports = [job.write(part, (sample(part, i) for i in range(5))) for part in (0, 1)]
    with pytest.raises(shardtool.ShardtoolError, match="Task 1 has reported twice"):
        job.commit([*reports, reports[1]])
    with pytest.raises(shardtool.ShardtoolError, match=r"Part 2/\* of .* was started, but is not among"):
        job.commit(reports[:1])
    with pytest.raises(shardtool.ShardtoolError, match=r"3/\* was not started"):
        job.commit([*reports, {"part": 2, "samples": 5}])
    with pytest.raises(shardtool.ShardtoolError, match="No task wrote samples"):
        job.commit([])
    job.commit(reports)


def test_an_aborted_job_leaves_nothing_and_touches_nothing_of_others(tmp_path):
    out = tmp_path / "out"
    job = PartWriter(out, classes=["a", "b"])
    job.plan()
    job.write(0, [sample(0, 0)])
    PartWriter(out).abort()
    assert stored(out)
    job.abort()
    assert not out.exists() or list(out.iterdir()) == []
    whole = PartWriter(out)
    whole.plan()
    whole.commit([whole.write(0, [sample(0, 0)])])
    whole.abort()
    with pytest.raises(shardtool.ShardtoolError, match="already contains a dataset"):
        PartWriter(out).plan()
    assert len(stored(out)) == 1
    PartWriter(out, overwrite=True).plan()
    assert stored(out) == {}


def test_a_task_of_an_earlier_job_is_rejected(tmp_path):
    earlier, job = PartWriter(tmp_path / "out"), PartWriter(tmp_path / "out", overwrite=True)
    earlier.plan()
    job.plan()
    earlier.write(0, [sample(0, 0)])
    with pytest.raises(shardtool.ShardtoolError, match="was already started"):
        job.write(0, [sample(0, 1)])


def test_a_sample_that_fails_leaves_the_part_unfinished(tmp_path):
    job = PartWriter(tmp_path / "out")
    job.plan()

    def samples():
        yield sample(0, 0)
        raise ValueError("upstream")

    with pytest.raises(ValueError, match="upstream"):
        job.write(0, samples())
    with pytest.raises(shardtool.ShardtoolError, match="did not end"):
        job.commit([{"part": 0, "samples": 1}])
