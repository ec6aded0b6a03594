"""Each page "Use with X" as a reader follows it: a new environment, the page's pip commands, its code and its program.

`shardtool` itself is the wheel of the checkout (SHARDTOOL_WHEEL: one that was built before), and the versions of all
else are the newest. `npm run test:long pages` has this; the photos of examples/photos are the data.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from datasets import CHECKOUT

pytestmark = [pytest.mark.long, pytest.mark.time_limit(1800)]

UV = (sys.executable, "-m", "uv")
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = sorted(page.name for page in (CHECKOUT / "docs").glob("use-with-*.md"))
EXAMPLES = CHECKOUT / "examples" / "frameworks"

#: One pip command of a page, and what follows it until the next one.
Part = namedtuple("Part", "packages code commands programs")

#: Replacements that make the pages small enough for a CPU and 60 photos. Each must occur in a page.
SMALLER = [
    (r"range\(90\)", "range(1)"),
    (r"max_epochs=90", "max_epochs=1"),
    (r"batch_size=(64|256)\b", "batch_size=16"),
    (r"\(3, 224, 224\), 256", "(3, 64, 64), 16"),
    (r'device="cuda"', 'device="cpu"'),
    (r"ViTConfig\(", "ViTConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, "),
    (r'TrainingArguments\("trained"', 'TrainingArguments("trained", num_train_epochs=1'),
    (
        r"train\.py (.*) --model resnet50",
        r"train.py \1 --model test_resnet --num-classes 6 -b 16 --epochs 1 --device cpu",
    ),
    (
        r"validate\.py (.*) --model resnet50 --pretrained",
        r"validate.py \1 --model test_resnet --num-classes 6 -b 16 --device cpu "
        r"--checkpoint output/train/*/last.pth.tar",
    ),
    (
        r"--model ViT-B-32 --batch-size 256",
        "--model ViT-S-32-alt --force-image-size 64 --precision fp32 --batch-size 16 --epochs 1 --workers 1",
    ),
]  # fmt: skip


def parts_of(page):
    """The packages that a page installs, with the code, the commands and the whole programs that belong to it."""
    parts = []
    text = (CHECKOUT / "docs" / page).read_text()
    for found in BLOCK.finditer(text):
        lines = found[2].splitlines()
        if found[1] == "sh" and any(line.startswith("pip install ") for line in lines):
            [line] = [line for line in lines if line.startswith("pip install ")]
            parts.append(Part(shlex.split(line)[2:], [], [], []))
            lines.remove(line)
        if found[1] == "python":
            parts[-1].code.append(found[2])
        else:
            parts[-1].commands.extend(line for line in lines if line.strip())
    for program in re.findall(r"`examples/frameworks/(train_\w+\.py)`", text):
        parts[-1].programs.append(program)
    return parts


def smaller(text):
    for pattern, less in SMALLER:
        text = re.sub(pattern, less, text)
    return text


def run(*command, cwd, environment=(), timeout=1200):
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env={**os.environ, **dict(environment)}, capture_output=True, text=True,
        timeout=timeout, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory, certificates):
    if "SHARDTOOL_WHEEL" in os.environ:
        return Path(os.environ["SHARDTOOL_WHEEL"])
    folder = tmp_path_factory.mktemp("wheel")
    run(*UV, "build", "--wheel", "--out-dir", folder, CHECKOUT / "python", cwd=folder, environment=certificates)
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture
def folder(tmp_path):
    """A working directory with photos and their captions. Large environments are removed after their test."""
    made = tmp_path / "work"
    shutil.copytree(CHECKOUT / "examples" / "photos", made / "photos")
    for photo in made.glob("photos/*/*.jpg"):
        photo.with_suffix(".txt").write_text(f"a photo of {photo.parent.name}")
    yield made
    shutil.rmtree(tmp_path, ignore_errors=True)


def lay_out(text, python, folder):
    """The datasets that the text names, packed by the command of the environment."""
    run(python.with_name("shardtool"), "pack", "photos", "packed", "--max-shard-samples", "10", cwd=folder)
    names = ["data/train", "data/val", *(["shards/train", "shards/val"] if "shards/train" in text else ["shards"])]
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).symlink_to(folder / "packed")


CASES = [
    pytest.param(page, number, id=f"{page[len('use-with-') : -len('.md')]} {number}")
    for page in PAGES
    for number in range(len(parts_of(page)))
]


def test_each_page_and_each_replacement_is_used():
    texts = "".join((CHECKOUT / "docs" / page).read_text() for page in PAGES)
    assert [pattern for pattern, _ in SMALLER if not re.search(pattern, texts)] == []
    for page in PAGES:
        assert all("shardtool" in part.packages and (part.code or part.commands) for part in parts_of(page)), page


@pytest.mark.parametrize(("page", "number"), CASES)
def test_a_reader_who_follows_the_page_gets_what_it_shows(page, number, wheel, folder):
    part = parts_of(page)[number]
    code, commands = smaller("\n".join(part.code)), [smaller(line) for line in part.commands]
    if "pyspark" in " ".join(part.packages) and shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    run(*UV, "venv", "--quiet", "--python", sys.executable, folder / "venv", cwd=folder)
    python = folder / "venv" / "bin" / "python"
    packages = [str(wheel) if name == "shardtool" else name for name in part.packages]
    run(*UV, "pip", "install", "--quiet", "--python", python, *packages, cwd=folder)
    lay_out(code + "\n".join(commands), python, folder)

    for program in EXAMPLES.glob("*.py"):
        # Each alone, as if a reader had copied it.
        shutil.copy(program, folder)
    environment = {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}", "CUDA_VISIBLE_DEVICES": ""}
    if code:
        (folder / "page.py").write_text(code)
        print(run(python, "page.py", cwd=folder, environment=environment))
    for program in part.programs:
        print(run(python, program, "--data", "packed", cwd=folder, environment=environment))
    for command in commands:
        script = next(iter(re.findall(r"\b(train|validate)\.py\b", command)), None)
        if script is not None:
            # timm's scripts are not in its package.
            if "SHARDTOOL_TIMM_SCRIPTS" not in os.environ:
                continue
            shutil.copy(Path(os.environ["SHARDTOOL_TIMM_SCRIPTS"]) / f"{script}.py", folder)
        print(run("sh", "-ec", command, cwd=folder, environment=environment))
