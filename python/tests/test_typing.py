"""The package is typed, and its types say what users write."""

import subprocess
import sys

from datasets import CHECKOUT

USER = """
import shardtool

loader = shardtool.Loader("shards/", batch_size=256, transform="train224", where=None, hold=2)
loader.set_epoch(3)
for images, labels in loader:
    images.float()
state: dict[str, object] = loader.state_dict()
names: list[str] = loader.classes
"""
WRONG = """
import shardtool

shardtool.Loader("shards/", batchsize=256)
shardtool.Loader("shards/", last_batch="padded")
"""


def mypy(*arguments, **how):
    command = [sys.executable, "-m", "mypy", "--no-incremental", *map(str, arguments)]
    return subprocess.run(command, cwd=CHECKOUT / "python", capture_output=True, text=True, timeout=160, **how)


def test_the_package_holds_in_the_strictest_setting():
    done = mypy("src/shardtool")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_user_s_program_is_checked(tmp_path):
    (tmp_path / "user.py").write_text(USER)
    (tmp_path / "wrong.py").write_text(WRONG)
    environment = {"MYPYPATH": "src", "PATH": ""}
    assert "Success" in mypy(tmp_path / "user.py", env=environment).stdout
    wrong = mypy(tmp_path / "wrong.py", env=environment).stdout
    assert 'Unexpected keyword argument "batchsize"' in wrong
    assert 'Argument "last_batch"' in wrong
