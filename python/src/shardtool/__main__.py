"""The command line tool: ``shardtool pack photos/ shards/``, or ``python -m shardtool``."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NoReturn

from .bridge.node import find_node, find_program
from .errors import ReaderError


def main() -> NoReturn:
    """Replaces this process with the command line tool, which then owns the terminal, signals and exit status."""
    try:
        node, program = find_node(), find_program("command")
        command = [node, program, *sys.argv[1:]]
        # On Windows, `exec` would return to the caller before the tool ends.
        if sys.platform == "win32":
            raise SystemExit(subprocess.call(command))
        os.execv(node, command)
    except (ReaderError, OSError) as error:
        print(f"shardtool: {error}", file=sys.stderr)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
