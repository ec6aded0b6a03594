"""timm's own train.py and validate.py run on shards as on folders. SHARDTOOL_TIMM_SCRIPTS names a folder with both."""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from frameworks import needs
from PIL import Image

from datasets import CHECKOUT, pack

SCRIPTS = os.environ.get("SHARDTOOL_TIMM_SCRIPTS")
#: Classes are colours, which some epochs of a small model tell apart.
COLOURS = {"blue": (60, 60, 200), "gray": (110, 110, 110), "green": (60, 170, 60), "red": (200, 60, 60)}
PER_CLASS = {"train": 40, "val": 13}
COMMON = ("--model", "test_resnet", "--device", "cpu", "--input-size", "3", "32", "32", "--num-classes", "4", "-j", "1")
TRAIN = ("--epochs", "4", "--batch-size", "16", "--lr", "0.05", "--opt", "sgd", "--warmup-epochs", "0", "--seed", "1")

pytestmark = [
    pytest.mark.time_limit(1200),
    pytest.mark.skipif(SCRIPTS is None, reason="SHARDTOOL_TIMM_SCRIPTS names no folder with train.py and validate.py"),
    needs("timm"),
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The same images as files and as shards."""
    root = tmp_path_factory.mktemp("colours")
    rng = np.random.default_rng(3)
    for split, count in PER_CLASS.items():
        for name, colour in COLOURS.items():
            for number in range(count):
                pixels = np.clip(rng.normal(colour, 60, (40, 40, 3)), 0, 255).astype(np.uint8)
                file = root / "images" / split / name / f"{number:02}.png"
                file.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(pixels).save(file)
        pack(root / "images" / split, root / "shards" / split)
    return root


def script(name, folder, *arguments, on_shards):
    launcher = ["-m", "shardtool.timm"] if on_shards else []
    data = (
        "--data-dir",
        folder / ("shards" if on_shards else "images"),
        *(("--dataset", "shards/") if on_shards else ()),
    )
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning:shardtool", *launcher, str(Path(SCRIPTS) / name)]
        + [str(argument) for argument in (*data, *COMMON, *arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT / "python" / "src"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert "reads single samples" not in done.stderr
    return done.stdout + done.stderr


def train(folders, out, *arguments, on_shards):
    """The rows of summary.csv, an epoch each."""
    options = ("--train-split", "train", "--val-split", "val", *TRAIN, *arguments)
    script("train.py", folders, *options, "--output", out, "--experiment", "run", on_shards=on_shards)
    return list(csv.DictReader((out / "run" / "summary.csv").open()))


def test_training_on_shards_has_the_accuracy_of_training_on_the_folder(folders, tmp_path):
    of_folder = train(folders, tmp_path / "folder", on_shards=False)
    of_shards = train(folders, tmp_path / "shards", on_shards=True)
    assert len(of_folder) == len(of_shards) == 4
    best = [max(float(row["eval_top1"]) for row in rows) for rows in (of_folder, of_shards)]
    # Chance is 25. Of 52 images, 6 are 11.5 %.
    assert min(best) > 60 and abs(best[0] - best[1]) < 15, best
    checkpoint = tmp_path / "shards" / "run" / "last.pth.tar"
    found = []
    for on_shards in (False, True):
        options = ("--split", "val", "--checkpoint", checkpoint, "--batch-size", "16")
        said = script("validate.py", folders, *options, on_shards=on_shards)
        found.append(re.search(r"Acc@1 ([\d.]+)", said.rsplit(" * ", 1)[-1]).group(1))
    # The last batch has 4 images: each of the 52 counts once, as from the folder.
    assert found[0] == found[1] == f"{float(of_shards[-1]['eval_top1']):.3f}"


def test_mixup_a_moving_average_and_resuming_work_on_shards(folders, tmp_path):
    options = ("--mixup", "0.2", "--cutmix", "1.0", "--model-ema", "--aa", "rand-m9-mstd0.5-inc1", "--reprob", "0.25")
    first = train(folders, tmp_path, *options, "--epochs", "2", on_shards=True)
    assert [row["epoch"] for row in first] == ["0", "1"]
    again = tmp_path / "again"
    rest = train(folders, again, *options, "--resume", tmp_path / "run" / "last.pth.tar", on_shards=True)
    assert [row["epoch"] for row in rest] == ["2", "3"]
    assert all(np.isfinite(float(row["train_loss"])) for row in (*first, *rest))
