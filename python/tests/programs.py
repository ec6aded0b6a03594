"""Python programs in processes that have imported torch and shardtool, which takes most of the time of a short one.

Run as a program, this file imports them and forks once for each job of a line that it reads: those run side by side.
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
        """Runs a script until it ends, with that exit code. Returns its lines, and its output on stderr."""
        return self.side_by_side(script, *arguments, cwd=cwd, code=code, environments=[{}])[0]

    def side_by_side(self, script, *arguments, cwd, environments, code=0):
        """Does that once for each of these additions to the environment, concurrently."""
        command = [str(script), *map(str, arguments)]
        jobs = [
            {
                **{"command": command, "folder": str(cwd), "environment": environment},
                **{name: str(cwd / f"{name}-{number}.txt") for name in ("stdout", "stderr")},
            }
            for number, environment in enumerate(environments)
        ]
        self._process.stdin.write(f"{json.dumps(jobs)}\n")
        self._process.stdin.flush()
        statuses = json.loads(self._process.stdout.readline())
        printed, complained = ([Path(job[name]).read_text() for job in jobs] for name in ("stdout", "stderr"))
        assert [os.waitstatus_to_exitcode(status) for status in statuses] == [code] * len(jobs), complained
        return [(text.splitlines(), other) for text, other in zip(printed, complained)]

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()


def next_job():
    """Returns in a separate process for each job, and in none once there are no more."""
    for line in sys.stdin:
        started = []
        for job in json.loads(line):
            started.append(os.fork())
            if started[-1] == 0:
                return job
        print([os.waitpid(pid, 0)[1] for pid in started], flush=True)
    sys.exit()


def redirect(file, number):
    opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(opened, number)
    os.close(opened)


if __name__ == "__main__":
    import numpy  # noqa: F401
    import torch  # noqa: F401

    import shardtool  # noqa: F401

    with contextlib.suppress(ImportError):
        import torchvision  # noqa: F401
    job = next_job()
    os.chdir(job["folder"])
    os.environ.update(job["environment"])
    redirect(os.devnull, 0)
    redirect(job["stdout"], 1)
    redirect(job["stderr"], 2)
    sys.argv = job["command"]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
