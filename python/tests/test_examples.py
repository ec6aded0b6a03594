"""The examples run, and a run that was stopped resumes exactly."""

import numpy as np
import pytest
from ports import held_port

from datasets import CHECKOUT, pack

pytestmark = pytest.mark.time_limit(600)

EXAMPLES = CHECKOUT / "examples"
STOPPED = [("--stop-after", 1), ("--resume", "--stop-after", 2), ("--resume",)]


@pytest.fixture
def train(run_script, tmp_path):
    return lambda script, *arguments: run_script(EXAMPLES / script, *arguments, cwd=tmp_path)


def test_training_that_was_stopped_resumes_with_the_same_losses(train, photos):
    command = ("train_resnet.py", "--data", photos, "--size", 32, "--epochs", 2, "--batch-size", 30)
    whole, _ = train(*command)
    assert [line.split(" loss ")[0] for line in whole] == [
        f"epoch {e} step {2 * e + s}" for e in (0, 1) for s in (1, 2)
    ]
    # Within an epoch, and after the last batch of one.
    parts = [train(*command, *options)[0] for options in STOPPED]
    assert [line for part in parts for line in part] == whole
    assert list(map(len, parts)) == [1, 1, 2]


@pytest.mark.parametrize("script", ["train_resnet.py", "evaluate.py"])
def test_the_error_for_a_missing_location_is_one_sentence(run_script, script, tmp_path):
    _, said = run_script(EXAMPLES / script, "--data", "nowhere", cwd=tmp_path, code=1)
    assert said.count("\n") == 1 and "nowhere cannot be opened" in said


def test_its_twin_with_the_standard_dataloader_runs(train):
    options = ("--size", 32, "--epochs", 1, "--batch-size", 30)
    lines, _ = train("train_resnet_dataloader.py", "--data", EXAMPLES / "photos", *options)
    assert len(lines) == 2


def test_detection_out_of_shards_has_the_losses_of_the_same_files(train, tmp_path):
    pytest.importorskip("torchvision.models.detection")
    train("train_detection.py", "--make", "shapes")
    shapes = tmp_path / "shapes"
    options = ("--coco", shapes / "annotations.json", "--no-shuffle")
    pack(shapes / "images", shapes / "shards", *options)
    # More steps than there are batches in an epoch.
    shards, _ = train("train_detection.py", "--data", "shapes/shards", "--steps", 7)
    files, _ = train("train_detection.py", "--data", "shapes", "--files", "--steps", 7)
    assert len(shards) == 7 and all(np.isfinite(losses_of(line)).all() for line in shards)
    for line, other in zip(shards, files):
        np.testing.assert_allclose(losses_of(line), losses_of(other), atol=2e-6)


def losses_of(line):
    return [float(word) for word in line.split()[3::2]]


def test_ranks_train_on_every_sample_once(programs, photos, tmp_path):
    # The variables that torchrun sets for its processes; the torchrun of torch 1.13 fails on Python 3.11.
    with held_port() as port:
        shared = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        ranks = programs.side_by_side(
            *(EXAMPLES / "train_ddp.py", "--size", 32, "--batch-size", 20, "--data", photos),
            cwd=tmp_path,
            environments=[{**shared, "RANK": rank, "LOCAL_RANK": rank} for rank in ("0", "1")],
        )
    assert [lines for lines, _ in ranks] == [["epoch 0: 60 samples over 2 ranks"], []]


def test_an_evaluation_by_map_style_access_sees_every_sample(train, photos):
    lines, _ = train("evaluate.py", "--data", photos, "--size", 32)
    assert len(lines) == 7
    assert [int(line.split()[-1]) for line in lines[:-1]] == [10] * 6
    assert lines[-1].endswith(" of 60")
