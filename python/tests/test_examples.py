"""The examples run, and a run that was stopped resumes exactly."""

import os
import socket
import subprocess
import sys

import numpy as np
import pytest

from datasets import CHECKOUT, pack

pytestmark = pytest.mark.time_limit(600)


def train(script, *arguments, cwd):
    done = subprocess.run(
        [sys.executable, str(CHECKOUT / "examples" / script), *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT / "python" / "src"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr


def test_training_that_was_stopped_goes_on_with_the_same_losses(photos, tmp_path):
    options = ("--data", photos, "--size", 64, "--epochs", 2)
    whole, bar = train("train_resnet.py", *options, cwd=tmp_path)
    assert len(whole) == 12
    assert "epoch 1 [##############################] 6/6" in bar
    # Within an epoch, and behind the last batch of one.
    for stop in (4, 6):
        first, _ = train("train_resnet.py", *options, "--stop-after", stop, cwd=tmp_path)
        rest, _ = train("train_resnet.py", *options, "--resume", cwd=tmp_path)
        assert first + rest == whole


def test_its_twin_with_the_standard_dataloader_runs(tmp_path):
    options = ("--data", CHECKOUT / "examples/photos", "--size", 64, "--epochs", 1)
    lines, _ = train("train_resnet_dataloader.py", *options, cwd=tmp_path)
    assert len(lines) == 6


def test_detection_out_of_shards_has_the_losses_of_the_same_files(tmp_path):
    pytest.importorskip("torchvision.models.detection")
    train("train_detection.py", "--make", "shapes", cwd=tmp_path)
    shapes = tmp_path / "shapes"
    options = ("--coco", shapes / "annotations.json", "--no-shuffle")
    pack(shapes / "images", shapes / "shards", *options)
    # More steps than there are batches in an epoch.
    shards, _ = train("train_detection.py", "--data", "shapes/shards", "--steps", 8, cwd=tmp_path)
    files, _ = train("train_detection.py", "--data", "shapes", "--files", "--steps", 8, cwd=tmp_path)
    assert len(shards) == 8 and all(np.isfinite(losses_of(line)).all() for line in shards)
    for line, other in zip(shards, files):
        np.testing.assert_allclose(losses_of(line), losses_of(other), atol=2e-6)


def losses_of(line):
    return [float(word) for word in line.split()[3::2]]


def test_ranks_train_on_every_sample_once(photos, tmp_path):
    # What torchrun tells the processes that it starts; torch 1.13's own fails on Python 3.11.
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    command = [sys.executable, str(CHECKOUT / "examples/train_ddp.py"), "--size", "32", "--data", str(photos)]
    shared = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    path = {"PYTHONPATH": str(CHECKOUT / "python" / "src"), "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen(
            command,
            cwd=tmp_path,
            env={**os.environ, **path, **shared, "RANK": rank, "LOCAL_RANK": rank},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in ("0", "1")
    ]
    printed = [rank.communicate(timeout=300)[0].splitlines() for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0]
    assert printed == [["epoch 0: 60 samples over 2 ranks"], []]


def test_an_evaluation_by_map_style_access_sees_every_sample(photos, tmp_path):
    lines, _ = train("evaluate.py", "--data", photos, cwd=tmp_path)
    assert len(lines) == 7
    assert [int(line.split()[-1]) for line in lines[:-1]] == [10] * 6
    assert lines[-1].endswith(" of 60")
