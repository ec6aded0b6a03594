"""Python in the guides runs as it is written, or says in front of it why it is not run."""

import os
import re
import subprocess
import sys

import pytest

from datasets import CHECKOUT

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


@pytest.mark.parametrize("code", list(blocks()))
def test_a_block_runs(code, photos, tmp_path):
    (tmp_path / "shards").symlink_to(photos)
    for name, fixture in PLACES.items():
        (tmp_path / name).symlink_to(CHECKOUT / "test" / "fixtures" / fixture)
    program = BEFORE + re.sub(r"\b90\b", "1", code)
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT / "python" / "src")},
        capture_output=True,
        text=True,
        timeout=160,
        check=False,
    )
    assert done.returncode == 0, done.stderr
