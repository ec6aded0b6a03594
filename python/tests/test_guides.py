"""Python in the guides runs as it is written, or has a comment before it that says why it is not run."""

import json
import re

import pytest

from datasets import CHECKOUT, pack, small_images

PAGES = [
    "README.md",
    "python/README.md",
    "docs/for-agents/SKILL.md",
    *(f"docs/{page.name}" for page in sorted((CHECKOUT / "docs").glob("*.md"))),
]
BLOCK = re.compile(r"(?:<!-- not run: (.+?) -->\n+)?^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: Things that the guides assume; ninety epochs are one here.
BEFORE = "device = 'cpu'\n"
#: Data that users of other software have.
PLACES = {"hub": "parquet/hub", "lit": "litdata/photos", "mds": "mds/photos", "records": "tfrecord/photos"}


#: Its blocks belong together, and have separate tests.
TUTORIAL = "docs/tutorial-scale.md"


def blocks():
    for page in PAGES:
        if page == TUTORIAL:
            continue
        for number, (not_run, code) in enumerate(BLOCK.findall((CHECKOUT / page).read_text())):
            if not not_run:
                yield pytest.param(code, id=f"{page}, {number}")


@pytest.fixture(scope="module")
def boxes(tmp_path_factory):
    """Images with objects, as in the page on detection."""
    folder = tmp_path_factory.mktemp("boxes")
    small_images(folder / "images", 8)
    for number, file in enumerate(sorted((folder / "images").glob("*/*.json"))):
        count = number % 3
        file.write_text(json.dumps({"boxes": [[2, 3, 10, 12]] * count, "labels": [1] * count}))
    return pack(folder / "images", folder / "shards")


@pytest.mark.parametrize("code", list(blocks()))
def test_a_block_runs(code, run_script, photos, boxes, tmp_path):
    (tmp_path / "shards").symlink_to(boxes if "annotations=" in code else photos)
    for name, fixture in PLACES.items():
        (tmp_path / name).symlink_to(CHECKOUT / "test" / "fixtures" / fixture)
    program = tmp_path / "program.py"
    program.write_text(BEFORE + re.sub(r"\b90\b", "1", code))
    run_script(program, cwd=tmp_path)


def scripts_of(page):
    """The Python blocks of a page, each with its text."""
    return [code for _, code in BLOCK.findall((CHECKOUT / page).read_text())]


def test_the_tutorial_resumes_with_the_losses_of_a_run_that_was_not_stopped(run_script, photos, tmp_path):
    (tmp_path / "shards").symlink_to(photos)
    train = tmp_path / "train.py"
    train.write_text(scripts_of(TUTORIAL)[0])
    whole, _ = run_script(train, cwd=tmp_path)
    (tmp_path / "checkpoint.pt").unlink()
    stopped, _ = run_script(train, "2", cwd=tmp_path)
    resumed, _ = run_script(train, cwd=tmp_path)
    assert len(stopped) == 2 and len(whole) == 6
    assert stopped + resumed == whole


def test_the_tutorial_shows_each_sample_once_to_two_processes(programs, photos, tmp_path):
    (tmp_path / "shards").symlink_to(photos)
    script = tmp_path / "ranks.py"
    script.write_text(scripts_of(TUTORIAL)[1])
    shared = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    environments = [{**shared, "RANK": rank, "LOCAL_RANK": rank} for rank in ("0", "1")]
    ranks = programs.side_by_side(script, cwd=tmp_path, environments=environments)
    for number, (lines, _) in enumerate(ranks):
        assert len(lines) == 3 and all(line.startswith(f"rank {number}: ") for line in lines)
    keys = {line.split()[2] for lines, _ in ranks for line in lines}
    assert len(keys) == 6
