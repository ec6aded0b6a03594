import os
import signal
from pathlib import Path

import pytest
from programs import Programs

from datasets import pack, small_images

LIMIT_SECONDS = 170
#: Where NODE_EXTRA_CA_CERTS waits: Node parses them at each of some hundred starts, for 0.05 s, and only what asks
#: npm's registry needs them. Workers of pytest-xdist have the environment that the process before them has left.
CERTIFICATES = "CERTIFICATES_FOR_NPM"
if "NODE_EXTRA_CA_CERTS" in os.environ:
    os.environ[CERTIFICATES] = os.environ.pop("NODE_EXTRA_CA_CERTS")


def pytest_collection_modifyitems(items):
    """What takes longest comes first, so that it does not run alone behind all others: with --no-loadscope-reorder."""
    items.sort(key=lambda item: item.get_closest_marker("time_limit") is None)


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
def certificates():
    """What the environment says of certificates, for programs that ask a registry."""
    return {"NODE_EXTRA_CA_CERTS": os.environ[CERTIFICATES]} if CERTIFICATES in os.environ else {}


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
