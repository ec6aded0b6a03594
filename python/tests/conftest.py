import os
import signal
import sys
from pathlib import Path

import pytest
from programs import Programs
from readers import LentReader, Readers

from datasets import pack, small_images

LIMIT_SECONDS = 170
#: Keeps NODE_EXTRA_CA_CERTS: Node parses them at each of some hundred starts, for 0.05 s, and only programs that use
#: npm's registry need them. Workers of pytest-xdist inherit the environment of the process before them.
CERTIFICATES = "CERTIFICATES_FOR_NPM"
if "NODE_EXTRA_CA_CERTS" in os.environ:
    os.environ[CERTIFICATES] = os.environ.pop("NODE_EXTRA_CA_CERTS")

# A loader has one decode worker, unless a test sets another number, as if each core had a rank: a second thread
# takes 0.1 s more to start, in some hundred loaders.
os.environ["LOCAL_WORLD_SIZE"] = str(os.cpu_count())


def pytest_collection_modifyitems(items):
    """The slowest tests run first, so that they do not run alone after all others: with --no-loadscope-reorder."""
    items.sort(key=lambda item: item.get_closest_marker("time_limit") is None)


@pytest.fixture(autouse=True)
def seeded_torch():
    """Torch draws the same numbers in every run: by default its generator has a random seed."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(0)


@pytest.fixture(autouse=True)
def time_limit(request):
    """No test waits forever, not even for a reader."""
    marker = request.node.get_closest_marker("time_limit")

    def too_long(*_):
        raise TimeoutError("the test took too long")

    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(marker.args[0] if marker else LIMIT_SECONDS)
    yield
    signal.alarm(0)


@pytest.fixture(scope="session")
def certificates():
    """The certificates in the environment, for programs that use a registry."""
    return {"NODE_EXTRA_CA_CERTS": os.environ[CERTIFICATES]} if CERTIFICATES in os.environ else {}


@pytest.fixture(scope="session")
def programs():
    programs = Programs()
    yield programs
    programs.close()


@pytest.fixture(scope="session")
def run_script(programs):
    """Runs a Python script (`Programs.run`)."""
    return programs.run


@pytest.fixture(scope="module")
def readers():
    readers = Readers()
    yield readers
    readers.close()


@pytest.fixture
def lent_readers(readers, monkeypatch):
    """Loaders and datasets of a file share readers: for tests that do not depend on processes."""
    for module in ("loader", "bridge.sample_reader"):
        monkeypatch.setattr(f"shardtool.{module}.ReaderProcess", lambda **_: LentReader(readers))


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
