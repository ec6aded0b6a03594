"""The wheel works without the checkout: it is installed in an empty environment, in an empty folder."""

import os
import re
import shutil
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from datasets import CHECKOUT

pytestmark = pytest.mark.time_limit(900)

#: Builds and installs like pip, in a quarter of its processor time.
UV = (sys.executable, "-m", "uv")
LARGEST_BYTES = 40 * 10**6
MACHINES = {"x86_64": 62, "aarch64": 183}
#: The newest symbols that manylinux_2_28 has.
NEWEST_GLIBC = (2, 28)
NEWEST_GLIBCXX = (3, 4, 25)


def run(*command, cwd, env=None, timeout=600):
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=env, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def build(tmp_path, source, **environment):
    tmp_path.mkdir(exist_ok=True)
    run(*UV, "build", "--wheel", "--out-dir", tmp_path, source, cwd=tmp_path, env={**os.environ, **environment})
    (wheel,) = tmp_path.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory, certificates):
    return build(tmp_path_factory.mktemp("wheel"), CHECKOUT / "python", **certificates)


def native_parts(wheel):
    """The machine, and the newest versions of symbols, of every native file."""
    with zipfile.ZipFile(wheel) as files:
        for name in files.namelist():
            data = files.read(name)
            if data[:4] == b"\x7fELF":
                yield name, struct.unpack_from("<H", data, 18)[0], data
            assert not name.endswith((".dll", ".dylib", ".exe")), name


def newest(pattern, data):
    versions = [tuple(map(int, found.split(b"."))) for found in re.findall(pattern, data)]
    return max(versions, default=(0,))


def check_contents(wheel, machine):
    assert wheel.name == f"shardtool-0.1.0-py3-none-manylinux_2_28_{machine}.whl"
    assert wheel.stat().st_size < LARGEST_BYTES
    with zipfile.ZipFile(wheel) as files:
        names = files.namelist()
    assert "shardtool/py.typed" in names
    packages = {re.match(r"shardtool/_reader/node_modules/((@[^/]+/)?[^/]+)/", name) for name in names}
    assert {"sharp", "shardtool", "@shardtool/reader", "@shardtool/format"} <= {at[1] for at in packages if at}
    parts = list(native_parts(wheel))
    kinds = ("koffi.node", "libturbojpeg.so.0", "sharp-linux-", "libvips-cpp.so")
    assert all(any(kind in name for name, *_ in parts) for kind in kinds)
    for name, of_machine, data in parts:
        assert of_machine == MACHINES[machine], name
        assert b"musl" not in name.encode(), name
        assert newest(rb"GLIBC_(\d+\.\d+)", data) <= NEWEST_GLIBC, name
        assert newest(rb"GLIBCXX_(\d+\.\d+\.\d+)\0", data) <= NEWEST_GLIBCXX, name
    # Those who redistribute the wheel redistribute the licences.
    licences = [name for name in names if "licen" in name.lower()]
    assert len(licences) >= 10


def test_the_wheel_has_the_native_parts_of_its_platform_alone_and_is_small(wheel):
    check_contents(wheel, os.uname().machine)


@pytest.mark.long
def test_a_wheel_for_the_other_processor_is_made_here_too(tmp_path, certificates):
    machine, node = {"x86_64": ("aarch64", "arm64"), "aarch64": ("x86_64", "x64")}[os.uname().machine]
    check_contents(
        build(tmp_path, CHECKOUT / "python", SHARDTOOL_WHEEL_PLATFORM=f"linux-{node}", **certificates), machine
    )


PROGRAM = """
import importlib.util, sys, shardtool, shardtool.bridge.node
assert importlib.util.find_spec("torch") is None
with shardtool.Loader(sys.argv[1], batch_size=16, transform="train224", output="numpy") as loader:
    rows = sum(len(images) for images, labels in loader)
    codec = loader.info()["codec"]["name"]
print(rows, codec, shardtool.__file__, shardtool.bridge.node.find_node())
"""


WRITER = """
import sys, shardtool
with shardtool.Dataset(sys.argv[1], transform="raw", output="numpy") as dataset, shardtool.Writer("made") as writer:
    writer.add("one", dataset[0].image)
print(len(shardtool.Dataset("made", output="numpy")))
"""


def environment_of(tmp_path, *packages):
    """The python of an empty environment with these packages."""
    run(*UV, "venv", "--quiet", "--python", sys.executable, tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    run(*UV, "pip", "install", "--quiet", "--python", python, *packages, cwd=tmp_path)
    return python


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The python of an environment with the wheel and its dependencies."""
    return environment_of(tmp_path_factory.mktemp("installed"), wheel)


def plain_environment(path):
    return {"PATH": str(path), "HOME": "/nonexistent"}


def test_installed_alone_in_an_empty_environment_it_loads_batches(installed, photos, tmp_path):
    folder = tmp_path / "empty"
    folder.mkdir()
    path = Path(shutil.which("node")).parent
    rows, codec, file, node = run(installed, "-c", PROGRAM, photos, cwd=folder, env=plain_environment(path)).split()
    assert (rows, codec) == ("60", "turbojpeg")
    assert Path(file).is_relative_to(installed.parents[1])
    assert node == shutil.which("node")
    assert list(folder.iterdir()) == []


def test_without_node_on_the_path_the_installed_node_runs_reader_writer_and_tool(installed, photos, tmp_path):
    nowhere = tmp_path / "nowhere"
    nowhere.mkdir()
    rows, codec, _, node = run(installed, "-c", PROGRAM, photos, cwd=nowhere, env=plain_environment(nowhere)).split()
    assert (rows, codec) == ("60", "turbojpeg")
    assert Path(node).is_relative_to(installed.parents[1])
    tool = installed.parent / "shardtool"
    run(
        tool,
        "pack",
        CHECKOUT / "examples/photos",
        nowhere / "shards",
        "--quiet",
        cwd=nowhere,
        env={"PATH": "", "HOME": "/"},
    )
    assert "60 samples" in run(
        installed, "-m", "shardtool", "ls", nowhere / "shards", cwd=nowhere, env={"PATH": "", "HOME": "/"}
    )
    written = run(installed, "-c", WRITER, photos, cwd=nowhere, env=plain_environment(nowhere))
    assert written.strip() == "1"


def test_without_npm_building_reports_what_is_missing(tmp_path):
    # Only the additional requirements of the build.
    for name in ("python3", "sh"):
        (tmp_path / name).symlink_to(shutil.which(name))
    done = subprocess.run(
        [*UV, "build", "--wheel", "--python", sys.executable, "--out-dir", str(tmp_path), str(CHECKOUT / "python")],
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode != 0
    assert "npm is not on PATH: install Node" in done.stdout + done.stderr


@pytest.mark.long
def test_an_sdist_has_all_that_the_wheel_is_made_of(wheel, tmp_path, certificates):
    program = "import hatchling.build, sys; print(hatchling.build.build_sdist(sys.argv[1]))"
    python = environment_of(tmp_path, "hatchling")
    name = run(python, "-c", program, tmp_path, cwd=CHECKOUT / "python").splitlines()[-1]
    again = build(tmp_path / "wheels", tmp_path / name, **certificates)
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(again) as other:
        assert sorted(one.namelist()) == sorted(other.namelist())
