"""Python in the guides runs as it is written, or says in front of it why it is not run."""

import json
import re

import pytest

from datasets import CHECKOUT, pack, small_images

PAGES = ["README.md", "python/README.md", *(f"docs/{page.name}" for page in sorted((CHECKOUT / "docs").glob("*.md")))]
BLOCK = re.compile(r"(?:<!-- not run: (.+?) -->\n+)?^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: What the guides take for granted; ninety epochs are one here.
BEFORE = "device = 'cpu'\n"
#: What people have who come from elsewhere: what their software wrote.
PLACES = {"hub": "parquet/hub", "mds": "mds/photos", "records": "tfrecord/photos"}


def blocks():
    for page in PAGES:
        for number, (not_run, code) in enumerate(BLOCK.findall((CHECKOUT / page).read_text())):
            if not not_run:
                yield pytest.param(code, id=f"{page}, {number}")


@pytest.fixture(scope="module")
def boxes(tmp_path_factory):
    """Images with objects, as the page on detection has them."""
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
