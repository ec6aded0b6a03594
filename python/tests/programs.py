"""Python programs that find torch already imported: importing it is most of the work of a short one.

Run as a program, this file imports it and forks once for each line that it reads.
"""

import contextlib
import json
import os
import runpy
import signal
import subprocess
import sys
from pathlib import Path

from datasets import CHECKOUT


class Programs:
    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            env={**os.environ, "PYTHONPATH": str(CHECKOUT / "python" / "src"), "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, script, *arguments, cwd, code=0):
        """Runs a script until it ends, with that exit code. Gives its lines, and what it wrote to stderr."""
        printed, complained = cwd / "stdout.txt", cwd / "stderr.txt"
        command = [str(script), *map(str, arguments)]
        job = {"command": command, "folder": str(cwd), "stdout": str(printed), "stderr": str(complained)}
        self._process.stdin.write(f"{json.dumps(job)}\n")
        self._process.stdin.flush()
        status = self._process.stdout.readline()
        assert os.waitstatus_to_exitcode(int(status)) == code, complained.read_text()
        return printed.read_text().splitlines(), complained.read_text()

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()


def next_job():
    """Returns in a process of its own for each job, and in none once there are no more."""
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            return json.loads(line)
        print(os.waitpid(pid, 0)[1], flush=True)
    sys.exit()


def redirect(file, number):
    opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(opened, number)
    os.close(opened)


if __name__ == "__main__":
    import numpy  # noqa: F401
    import torch  # noqa: F401

    with contextlib.suppress(ImportError):
        import torchvision  # noqa: F401
    job = next_job()
    os.chdir(job["folder"])
    redirect(os.devnull, 0)
    redirect(job["stdout"], 1)
    redirect(job["stderr"], 2)
    sys.argv = job["command"]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
