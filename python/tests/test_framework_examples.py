"""The examples for training frameworks run on the example photos, alone and with two processes, and resume."""

import os
import re
import subprocess
import sys

import pytest
from frameworks import needs
from ports import held_port

from datasets import CHECKOUT

EXAMPLES = CHECKOUT / "examples" / "frameworks"

pytestmark = pytest.mark.time_limit(1200)


def run(folder, script, *arguments, ranks=None, code=0):
    """The output of an example."""
    launcher = [] if ranks is None else ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={ranks}"]
    with held_port() as port:
        given = {"OMP_NUM_THREADS": "1", "MASTER_PORT": str(port)}
        done = subprocess.run(
            [sys.executable, *launcher, str(EXAMPLES / script), *map(str, arguments)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT / "python" / "src"), **given},
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
    assert done.returncode == code, done.stderr + done.stdout
    return done.stdout


def epochs_of(printed):
    return re.findall(r"^epoch .*$", printed, re.MULTILINE)


@needs("accelerate")
def test_the_example_of_accelerate_resumes_with_the_same_losses(photos, tmp_path):
    options = ("train_accelerate.py", "--data", photos)
    whole = run(tmp_path, *options)
    assert len(epochs_of(whole)) == 8 and whole.count("of 60\n") == 2
    parts = run(tmp_path, *options, "--stop-after", 5) + run(tmp_path, *options, "--resume")
    assert epochs_of(parts) == epochs_of(whole)
    assert run(tmp_path, *options, ranks=2).count("of 60\n") == 2


@needs("transformers", "accelerate")
def test_the_example_of_the_trainer_evaluates_on_each_photo_once_and_resumes(photos, tmp_path):
    options = ("train_trainer.py", "--data", photos)
    run(tmp_path, *options, "--max-steps", 5, ranks=2)
    assert "evaluated rows 60" in run(tmp_path, *options, "--resume", ranks=2)
    assert run(tmp_path, *options, "--output", "whole").count("evaluated rows 60") == 2


@needs("lightning")
def test_the_example_of_lightning_validates_on_each_photo_once_and_resumes(photos, tmp_path):
    options = ("train_lightning.py", "--data", photos, "--devices", 2)
    run(tmp_path, *options, "--max-steps", 5)
    [checkpoint] = (tmp_path / "checkpoints").glob("*step=5*.ckpt")
    assert "of 60\n" in run(tmp_path, *options, "--resume", checkpoint)


@needs("timm")
def test_the_example_of_timm_resumes_with_the_same_losses(photos, tmp_path):
    options = ("train_timm.py", "--data", photos)
    whole = run(tmp_path, *options)
    # Training drops the 12 photos after three whole batches; evaluation has all.
    assert len(epochs_of(whole)) == 6 and whole.count("of 60\n") == 2
    parts = run(tmp_path, *options, "--stop-after", 4) + run(tmp_path, *options, "--resume")
    assert epochs_of(parts) == epochs_of(whole)


@needs("torchtitan")
def test_the_example_of_torchtitan_resumes_with_the_same_samples_on_another_number_of_ranks(photos, tmp_path):
    def samples(printed):
        """By step, the samples of all ranks with their labels."""
        steps = {}
        for step, indices, labels in re.findall(r"step (\d+) samples \[(.*)\] labels \[(.*)\]", printed):
            steps.setdefault(int(step), []).extend(zip(indices.split(", "), labels.split(", ")))
        return [sorted(steps[step]) for step in sorted(steps)]

    options = ("torchtitan_loader.py", "--data", photos)
    whole = samples(run(tmp_path, *options, "--steps", 6, "--checkpoint", "whole"))
    # An epoch has three whole batches, without a sample twice.
    assert len(whole) == 6 and len({sample for step in whole[:3] for sample in step}) == 48
    begun = samples(run(tmp_path, *options, "--batch-size", 8, "--steps", 2, ranks=2))
    rest = samples(run(tmp_path, *options, "--steps", 4, "--resume"))
    assert begun + rest == whole
