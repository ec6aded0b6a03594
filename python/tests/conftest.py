import signal
from pathlib import Path

import pytest
from programs import Programs

from datasets import pack, small_images

LIMIT_SECONDS = 170


@pytest.fixture(autouse=True)
def time_limit(request):
    """No test waits for ever: not even one that waits for a reader."""
    marker = request.node.get_closest_marker("time_limit")

    def too_long(*_):
        raise TimeoutError("the test took too long")

    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(marker.args[0] if marker else LIMIT_SECONDS)
    yield
    signal.alarm(0)


@pytest.fixture(scope="session")
def run_script():
    """Runs a Python script (`Programs.run`)."""
    programs = Programs()
    yield programs.run
    programs.close()


@pytest.fixture(scope="session")
def photos(tmp_path_factory) -> Path:
    """The 60 example photos of six classes in six shards."""
    return pack("examples/photos", tmp_path_factory.mktemp("photos") / "shards", "--max-shard-samples", "10")


@pytest.fixture(scope="session")
def small(tmp_path_factory) -> Path:
    """200 images of 32x32 in two classes, each with a field `json`."""
    folder = tmp_path_factory.mktemp("small")
    small_images(folder / "images", 200)
    return pack(folder / "images", folder / "shards", "--max-shard-samples", "64")
