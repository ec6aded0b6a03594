"""The __main__.py of shardtool-gpu.pyz. Unpacks the archive, and runs bench:gpu and the tests that need a GPU.

    python3 shardtool-gpu.pyz [--out results] [--work FOLDER] [options of bench:gpu]

Writes the bench's table and report, and the tests' report and output, to the folder `results`. The exit status is 2 without
a GPU, with one sentence as output, and 1 if a test or a part of the bench failed.
"""

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

BENCH_SECONDS, TESTS_SECONDS = 420, 150
NO_GPU = 2


def unpack(folder):
    trusting = {"filter": "fully_trusted"} if hasattr(tarfile, "fully_trusted_filter") else {}
    with (
        zipfile.ZipFile(Path(__file__).parent) as archive,
        archive.open("payload.tar") as payload,
        tarfile.open(fileobj=payload, mode="r|*") as tar,
    ):
        tar.extractall(folder, **trusting)


def run(folder, arguments, seconds, output, environment=()):
    """Runs node with `arguments`, writes what it prints to `output`, and returns the exit status."""
    env = {**os.environ, "SHARDTOOL_PYTHON": sys.executable, **dict(environment)}
    with output.open("wb") as file:
        try:
            command = [str(folder / "node"), *arguments]
            return subprocess.run(command, cwd=folder, env=env, stdout=file, stderr=None, timeout=seconds).returncode
        except subprocess.TimeoutExpired:
            print(f"Not finished after {seconds} s: {' '.join(arguments)}", file=sys.stderr)
            return 1


def bench(folder, out, work, options):
    places = ["--work", str(work), "--out", str(out / "bench-gpu.json")]
    table = out / "bench-gpu.md"
    status = run(folder, ["bench/gpu/run.mjs", *places, *options], BENCH_SECONDS, table)
    print(table.read_text())
    return status


def tests(folder, out):
    report = out / "tests-gpu.json"
    environment = {"SHARDTOOL_REQUIRE_GPU": "1", "SHARDTOOL_REPORT": str(report), "NO_COLOR": "1"}
    vitest = ["node_modules/vitest/vitest.mjs", "run", "test/cuda-gpu.test.ts"]
    status = run(folder, vitest, TESTS_SECONDS, out / "tests-gpu.txt", environment)
    if report.exists():
        counts = json.loads(report.read_text())
        print(f"tests on the GPU: {counts['numPassedTests']} passed, {counts['numFailedTests']} failed")
    else:
        print(f"tests on the GPU: no report; see {out / 'tests-gpu.txt'}")
    return status


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--work", type=Path)
    args, options = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="shardtool-gpu-") as temporary:
        folder = Path(temporary)
        unpack(folder)
        out = args.out.resolve()
        out.mkdir(parents=True, exist_ok=True)
        status = bench(folder, out, (args.work or folder / "work").resolve(), options)
        if status != NO_GPU:
            status = max(status, tests(folder, out))
    sys.exit(status)


main()
