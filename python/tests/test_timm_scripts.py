"""timm's own train.py and validate.py run on shards as on folders. SHARDTOOL_TIMM_SCRIPTS names a folder with both."""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from frameworks import HEAD, global_batches, needs, numbered_images, numbers_of, run_program
from PIL import Image

from datasets import CHECKOUT, pack

SCRIPTS = os.environ.get("SHARDTOOL_TIMM_SCRIPTS")
#: Classes are colours, which a small model distinguishes after some epochs.
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
    """The rows of summary.csv, one per epoch."""
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


#: Runs a script of timm, and records the batches of each loader, before and after timm mixes them.
RECORDER = (
    HEAD
    + """
import functools, runpy
import shardtool.timm

LOOPS = {}

class Recorded(shardtool.Loader):
    def __iter__(self):
        what = "train" if self._options["shuffle"] else "evaluate"
        LOOPS[what] = LOOPS.get(what, -1) + 1
        for batch in super().__iter__():
            see(f"{what} {LOOPS[what]}", *batch, batch.valid)
            SEEN[-1].append([batch.epoch, len(batch.labels)])
            yield batch

shardtool.timm.Loader = Recorded
batches_of_timm = shardtool.timm.ShardPrefetchLoader.__iter__

def mixed(loader):
    for images, targets in batches_of_timm(loader):
        if targets.ndim == 2:
            # A mix of colours has the mix of their numbers in its label, each of which is half of the colour.
            of_labels = (targets * torch.arange(targets.shape[1])).sum(1) * 2
            difference = (images[:, 0].mean((1, 2)) * 255 - of_labels).tolist()
            assert all(-1.5 < value < 2.5 for value in difference), difference
            SEEN.append(["mixed", int((targets > 0).sum(1).max())])
        yield images, targets

shardtool.timm.ShardPrefetchLoader.__iter__ = mixed
sys.argv = [sys.argv[4], *sys.argv[5:]]
sys.path[0] = os.path.dirname(sys.argv[0])
shardtool.timm.install()
# timm passes the processor as a device to DDP, which rejects that.
parallel = torch.nn.parallel.DistributedDataParallel.__init__
torch.nn.parallel.DistributedDataParallel.__init__ = lambda self, *args, **more: parallel(
    self, *args, **{**more, "device_ids": None}
)
runpy.run_path(sys.argv[0], run_name="__main__")
save(os.environ["RANK"])
"""
)


def train_on_two_ranks(place, folder, *arguments):
    """The batches of each rank's loaders."""
    options = ("--data-dir", place, "--dataset", "shards/", "--train-split", "train", "--val-split", "val")
    model = ("--model", "test_resnet", "--device", "cpu", "--input-size", 3, 8, 8, "--num-classes", 26, "-j", 1)
    # Colours are unchanged, so that they are the numbers of samples.
    colours = ("--mean", 0, 0, 0, "--std", 1, 1, 1, "--color-jitter", 0, "--smoothing", 0)
    steps = ("--batch-size", 6, "--opt", "sgd", "--lr", 0.01, "--warmup-epochs", 0, "--seed", 1)
    more = [Path(SCRIPTS) / "train.py", *options, *model, *colours, *steps, *arguments]
    return run_program(RECORDER, place, folder, ranks=2, more=more)


def test_on_two_ranks_each_sample_is_used_once_with_mixup_average_evaluation_and_resuming(tmp_path):
    for split, count in (("train", 51), ("val", 49)):
        numbered_images(tmp_path / "images" / split, count)
        pack(tmp_path / "images" / split, tmp_path / "shards" / split, "--max-shard-samples", "20")
    options = ("--mixup", 0.8, "--cutmix", 1.0, "--model-ema", "--dist-bn", "reduce")
    options += ("--output", tmp_path / "output", "--experiment", "run", "--checkpoint-hist", 9)
    place = tmp_path / "shards"
    whole = train_on_two_ranks(place, tmp_path / "whole", *options, "--epochs", 4)
    resume = ("--resume", tmp_path / "output" / "run" / "checkpoint-1.pth.tar", "--epochs", 4)
    rest = train_on_two_ranks(place, tmp_path / "rest", *options[:-4], *resume)

    def epochs_of(ranks, what, count):
        return [
            global_batches([[one[:2] for one in seen] for seen in ranks], f"{what} {loop}") for loop in range(count)
        ]

    trained = epochs_of(whole, "train", 4)
    # Three samples remain after the last whole batch.
    assert [[len(rows) for rows in batches] for batches in trained] == [[12] * 4] * 4
    assert all(len(set(numbers_of(batches))) == 48 for batches in trained)
    assert len({tuple(numbers_of(batches)) for batches in trained}) == 4
    assert epochs_of(rest, "train", 2) == trained[2:]
    assert {one[2][0] for one in rest[0] if one[0].startswith("train")} == {2, 3}
    # Each epoch evaluates the model and its moving average. The rank without a sample of the last batch gets one more.
    for loop, batches in enumerate(epochs_of(whole, "evaluate", 8)):
        assert sorted(numbers_of(batches)) == list(range(49))
        assert sum(one[2][1] for seen in whole for one in seen if one[0] == f"evaluate {loop}") == 50
    assert {count for seen in whole for name, count, *_ in seen if name == "mixed"} == {2}
