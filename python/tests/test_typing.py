"""The package is typed, and its types accept what users write."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import shardtool
from datasets import CHECKOUT
from shardtool import options

USER = """
import shardtool

loader = shardtool.Loader("shards/", batch_size=256, transform="train224", where=None, reuse=True)
loader.set_epoch(3)
for images, labels in loader:
    images.float()
state: dict[str, object] = loader.state_dict()
names: list[str] = loader.classes
"""
WRONG = """
import shardtool

shardtool.Loader("shards/", batchsize=256)
shardtool.Loader("shards/", last_batch="padded")
shardtool.Loader("shards/", output="jax")
shardtool.iterable_dataset("shards/", batchsize=256)
for numpy in shardtool.Loader("shards/", output="numpy"):
    numpy.images.float()
for dlpack in shardtool.Loader("shards/", output="dlpack"):
    dlpack.labels.tolist()
"""
SHOWN = """
from typing import Any
import shardtool

options: shardtool.LoaderOptions = {"seed": 1}
anything: dict[str, Any] = {"seed": 1}
plain: shardtool.Loader = shardtool.Loader("shards/")

for torch in shardtool.Loader("shards/", batch_size=256, reuse=True):
    reveal_type(torch.images)
    reveal_type(torch.labels)
    torch.images.float()
for numpy in shardtool.Loader("shards/", output="numpy", with_keys=True, **options):
    reveal_type(numpy.images)
    reveal_type(numpy.labels)
    numpy.images.mean()
reveal_type(next(iter(shardtool.Loader("shards/", output="dlpack"))).images)
reveal_type(next(iter(shardtool.Loader("shards/", collate="list", seed=1))).images)
reveal_type(next(iter(shardtool.Loader("shards/", transform="raw", output="numpy"))).images)
reveal_type(next(iter(shardtool.Loader("shards/", **anything))).images)
reveal_type(next(iter(plain)).images)

mixture = shardtool.Mixture([{"dataset": "a/"}, {"dataset": "b/"}])
reveal_type(next(iter(mixture.loader(batch_size=8))).images)
reveal_type(next(iter(mixture.loader(output="numpy", seed=1))).labels)
reveal_type(next(iter(mixture.loader(output="dlpack"))).images)
reveal_type(next(iter(mixture.loader(transform="raw"))).images)
reveal_type(next(iter(shardtool.iterable_dataset("shards/", batch_size=8))).images)
reveal_type(next(iter(shardtool.iterable_dataset("shards/", output="numpy").loader)).labels)
reveal_type(shardtool.iterable_dataset(mixture, collate="list", output="numpy").loader)

reveal_type(shardtool.Dataset("shards/", transform="eval224")[0].image)
reveal_type(shardtool.Dataset("shards/", output="numpy")["cat/1"].image)
reveal_type(shardtool.Dataset("shards/", transform="raw")[:7][0].image)
reveal_type(shardtool.Dataset("shards/", transform=lambda image: 7, seed=1)[0].image)
"""
TENSOR, ARRAY = "torch._tensor.Tensor", "numpy.ndarray[Any, numpy.dtype[Any]]"
TYPES = [
    *(TENSOR, TENSOR, ARRAY, ARRAY, "shardtool.batch.DLPackArray"),
    *("list[Any]", "list[bytes]", "Any", "Any"),
    *(TENSOR, ARRAY, "shardtool.batch.DLPackArray", "list[bytes]"),
    *(TENSOR, ARRAY, "shardtool.loader.Loader[Any, list[Any]]"),
    *(TENSOR, ARRAY, "bytes", "int"),
]


@pytest.fixture(scope="module")
def mypy(tmp_path_factory):
    """Runs mypy on programs by their names. Later programs reuse what it has read of numpy and the standard library."""
    folder = tmp_path_factory.mktemp("programs")
    for name, text in {"user": USER, "wrong": WRONG, "shown": SHOWN}.items():
        (folder / f"{name}.py").write_text(text)
    # As if installed alone: numpy's types are not checked.
    (folder / "installed").mkdir()
    (folder / "installed" / "numpy").symlink_to(Path(np.__file__).parent)
    (folder / "mypy.ini").write_text("[mypy]\n[mypy-numpy.*]\nignore_errors = true\n")
    options = ["--strict", "--follow-imports=silent", "--config-file", folder / "mypy.ini"]

    def run(*arguments, programs):
        files = [folder / f"{name}.py" for name in programs]
        command = [sys.executable, "-m", "mypy", *options, "--cache-dir", folder / "cache", *arguments, *files]
        path = f"src:{folder / 'installed'}"
        return subprocess.run(
            [str(part) for part in command],
            **{"cwd": CHECKOUT / "python", "env": {"MYPYPATH": path, "PATH": ""}, "timeout": 160},
            **{"capture_output": True, "text": True, "check": False},
        )

    return run


@pytest.fixture(scope="module")
def without_torch(mypy):
    return mypy("--no-site-packages", programs=["shown"])


@pytest.fixture(scope="module")
def checked(mypy, without_torch):
    """The output of mypy for the package and all programs: with torch, which takes it five seconds each time."""
    return mypy("src/shardtool", programs=["user", "wrong", "shown"])


def test_a_program_without_torch_is_checked_as_well(without_torch):
    assert errors(without_torch, "shown") == {}
    assert revealed(without_torch) == ["Any" if name == TENSOR else name for name in TYPES]


def test_the_package_holds_in_the_strictest_setting(checked):
    assert [line for line in checked.stdout.splitlines() if line.startswith("src/shardtool")] == []
    assert re.search(r"checked \d\d source files", checked.stdout)


def test_a_user_s_program_is_checked(checked):
    assert errors(checked, "user") == {}
    wrong = errors(checked, "wrong")
    assert 'Unexpected keyword argument "batchsize"' in wrong[4]
    assert 'matches argument types "str", "str"' in wrong[5]
    assert 'matches argument types "str", "str"' in wrong[6]
    assert 'Unexpected keyword argument "batchsize"' in wrong[7]
    assert '"float"' in wrong[9]
    assert '"tolist"' in wrong[11]


def errors(done, program):
    """The messages for a program, by line; the first one of each line."""
    found = re.findall(rf"^\S+/{program}\.py:(\d+): error: (.*)", done.stdout, re.MULTILINE)
    return {int(line): text for line, text in reversed(found)}


def revealed(done):
    """Types without the module of built-in ones, which not every mypy prints."""
    return [name.replace("builtins.", "").rstrip("?") for name in re.findall(r'Revealed type is "(.*)"', done.stdout)]


def test_images_have_the_type_that_output_says(checked):
    assert errors(checked, "shown") == {}
    assert revealed(checked) == TYPES


def test_type_checkers_know_all_that_a_loader_and_a_dataset_take():
    # The overloads name them by typed dictionaries, the functions individually.
    own = set(inspect.signature(shardtool.Loader.__init__).parameters) - {"self", "location", "output", "options"}
    assert set(options.LoaderArguments.__annotations__) == own | set(shardtool.LoaderOptions.__annotations__)
    assert set(options.ListArguments.__annotations__) == set(options.LoaderArguments.__annotations__) - {"collate"}
    assert set(options.RawArguments.__annotations__) == set(options.LoaderArguments.__annotations__) - {"transform"}
    assert set(options.RawListArguments.__annotations__) == set(options.ListArguments.__annotations__) - {"transform"}
    taken = set(inspect.signature(shardtool.Dataset.__init__).parameters) - {"unknown"}
    assert set(options.DatasetArguments.__annotations__) == taken - {"self", "location", "transform", "output"}


def test_types_with_parameters_stand_in_annotations_that_are_evaluated():
    for one in (shardtool.Loader[int], shardtool.Batch[int], shardtool.Dataset[int], shardtool.Sample[int]):
        assert one.__args__ == (int,)
    assert shardtool.Batch[int, list].__args__ == (int, list)
