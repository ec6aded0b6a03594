"""Puts the reader (JavaScript, WebAssembly and native parts of one platform) into the wheel.

In a checkout, npm builds it. An sdist contains the tarballs of that build. SHARDTOOL_WHEEL_PLATFORM=linux-arm64 makes
the wheel of another platform, because all native parts are prebuilt.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: Platform tags of wheels by Node's names of platforms. libvips needs glibc 2.28, all other parts an older one.
WHEEL_TAGS = {
    "linux-x64": "manylinux_2_28_x86_64",
    "linux-arm64": "manylinux_2_28_aarch64",
    "darwin-x64": "macosx_11_0_x86_64",
    "darwin-arm64": "macosx_11_0_arm64",
}
#: The packages of this project that the command line tool consists of, each after its dependencies.
OWN_PACKAGES = ("base", "storage", "format", "reader", "cuda", "writer", "cli")
#: Extensions of files that are not needed at runtime.
UNUSED_ENDS = (".d.ts", ".d.cts", ".d.mts", ".map", ".md", ".cc", ".hh", ".h", ".c", ".S", ".asm", ".txt.in")
TARBALLS = "tarballs"


class ReaderBuildHook(BuildHookInterface):
    def initialize(self, version: str, build_data: Dict[str, Any]) -> None:
        # An editable install runs the build of the checkout.
        if version == "editable":
            return
        self._work = Path(tempfile.mkdtemp(prefix="shardtool-wheel-"))
        tarballs = Path(self.root) / TARBALLS
        if not tarballs.is_dir():
            # .ci/run has already packed them.
            tarballs = Path(os.environ.get("SHARDTOOL_TARBALLS") or self._work / TARBALLS)
        if not tarballs.is_dir():
            pack_checkout(Path(self.root).parent, tarballs)
        if self.target_name == "sdist":
            build_data["force_include"][str(tarballs)] = TARBALLS
            return
        node_platform = os.environ.get("SHARDTOOL_WHEEL_PLATFORM") or host_platform()
        if node_platform not in WHEEL_TAGS:
            raise SystemExit(f"There is no wheel of shardtool for {node_platform}, only for {', '.join(WHEEL_TAGS)}.")
        modules = install(tarballs, self._work / "reader", node_platform)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{WHEEL_TAGS[node_platform]}"
        build_data["force_include"][str(modules)] = "shardtool/_reader/node_modules"

    def finalize(self, version: str, build_data: Dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            shutil.rmtree(self._work, ignore_errors=True)


def host_platform() -> str:
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(platform.machine().lower(), platform.machine())
    return f"{sys.platform}-{machine}"


def npm(*arguments: str, cwd: Path) -> str:
    program = shutil.which("npm")
    if program is None:
        raise SystemExit(
            "Building shardtool needs Node 20.19 or newer with npm, but npm is not on PATH: install Node, or install a "
            "wheel, which contains the reader."
        )
    done = subprocess.run([program, *arguments], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"npm {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def pack_checkout(checkout: Path, target: Path) -> None:
    """Builds the packages of a checkout, and packs them as npm would publish them."""
    if not (checkout / "packages" / "reader").is_dir():
        raise SystemExit(f"{checkout} is not a checkout of shardtool: build from a checkout, or from the sdist.")
    if not (checkout / "node_modules").is_dir():
        npm("run", "--silent", "setup", cwd=checkout)
    npm("run", "--silent", "build", cwd=checkout)
    target.mkdir()
    folders = [f"./packages/{name}" for name in OWN_PACKAGES]
    npm("pack", "--silent", "--ignore-scripts", "--pack-destination", str(target), *folders, cwd=checkout)


def install(tarballs: Path, folder: Path, node_platform: str) -> Path:
    """node_modules with the reader, and what it runs on `node_platform`."""
    folder.mkdir()
    (folder / "package.json").write_text('{ "private": true }\n')
    system, cpu = node_platform.split("-")
    where = [f"--os={system}", f"--cpu={cpu}", *(["--libc=glibc"] if system == "linux" else [])]
    files = [str(file) for file in sorted(tarballs.glob("*.tgz"))]
    npm("install", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", *where, *files, cwd=folder)
    modules = folder / "node_modules"
    (modules / ".package-lock.json").unlink()
    keep_packages(modules, needed(modules))
    drop_unused_files(modules, node_platform)
    return modules


def needed(modules: Path) -> List[Path]:
    """Folders of the packages that the tool and the reader run on."""
    folders: List[Path] = []
    waiting = [modules / "shardtool"]
    while waiting:
        folder = waiting.pop()
        if folder in folders:
            continue
        folders.append(folder)
        package = json.loads((folder / "package.json").read_text())
        for name in [*package.get("dependencies", {}), *package.get("optionalDependencies", {})]:
            found = find_package(name, folder, modules)
            if found is not None:
                waiting.append(found)
    return folders


def find_package(name: str, importer: Path, modules: Path) -> Optional[Path]:
    """Where Node finds a package: the nearest node_modules on the way up."""
    for folder in (importer, *importer.parents):
        if (folder / "node_modules" / name / "package.json").exists():
            return folder / "node_modules" / name
        if folder / "node_modules" == modules:
            return None
    return None


def keep_packages(modules: Path, folders: List[Path]) -> None:
    for package in packages(modules):
        if package not in folders:
            shutil.rmtree(package)


def packages(modules: Path) -> Iterator[Path]:
    for entry in list(modules.iterdir()):
        if entry.name.startswith("@"):
            yield from entry.iterdir()
        elif entry.is_dir():
            yield entry


def drop_unused_files(modules: Path, node_platform: str) -> None:
    for libraries in (modules / "@shardtool/reader/lib/turbojpeg").iterdir():
        if libraries.name != node_platform:
            shutil.rmtree(libraries)
    for musl in modules.glob("@koromix/*/musl_*"):
        shutil.rmtree(musl)
    # Keeps only the native part of LMDB that the bundle loads.
    for other in modules.glob("@lmdb/*/*.node"):
        if other.name not in ("node.napi.glibc.node", "node.napi.node"):
            other.unlink()
    for file in modules.rglob("*"):
        if file.is_file() and file.name.endswith(UNUSED_ENDS) and "licen" not in file.name.lower():
            file.unlink()
