"""The examples run, and a run that was stopped resumes exactly."""

import os
import subprocess
import sys

import pytest

from datasets import CHECKOUT

pytestmark = pytest.mark.time_limit(600)


def train(script, *arguments, cwd):
    done = subprocess.run(
        [sys.executable, str(CHECKOUT / "examples" / script), "--size", "64", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT / "python" / "src"), "OMP_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr


def test_training_that_was_stopped_goes_on_with_the_same_losses(photos, tmp_path):
    options = ("--data", photos, "--epochs", 2)
    whole, bar = train("train_resnet.py", *options, cwd=tmp_path)
    assert len(whole) == 12
    assert "epoch 1 [##############################] 6/6" in bar
    # Within an epoch, and behind the last batch of one.
    for stop in (4, 6):
        first, _ = train("train_resnet.py", *options, "--stop-after", stop, cwd=tmp_path)
        rest, _ = train("train_resnet.py", *options, "--resume", cwd=tmp_path)
        assert first + rest == whole


def test_its_twin_with_the_standard_dataloader_runs(tmp_path):
    lines, _ = train("train_resnet_dataloader.py", "--data", CHECKOUT / "examples/photos", "--epochs", 1, cwd=tmp_path)
    assert len(lines) == 6
