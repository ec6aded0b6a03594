"""Default numbers of workers follow the CPU limit of a container."""

import math
import os

import pytest

from shardtool.cores import available_cores, cores_of_control_group, cores_of_this_rank

V1 = {"proc/self/cgroup": "4:memory:/docker/1\n3:cpu,cpuacct:/docker/1\n0::/\n"}
V1_CPU = "sys/fs/cgroup/cpu,cpuacct/"
POD = "sys/fs/cgroup/kubepods/pod1/"


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, math.inf),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"}, 1.5),
        (
            {
                "proc/self/cgroup": "0::/kubepods/pod1/box\n",
                POD + "box/cpu.max": "max 100000\n",
                POD + "cpu.max": "400000 100000\n",
            },
            4,
        ),
        ({**V1, V1_CPU + "cpu.cfs_quota_us": "250000\n", V1_CPU + "cpu.cfs_period_us": "50000\n"}, 5),
        ({**V1, V1_CPU + "cpu.cfs_quota_us": "-1\n", V1_CPU + "cpu.cfs_period_us": "50000\n"}, math.inf),
        ({"proc/self/cgroup": "x\n0::/../..\n0::/\n", "sys/fs/cgroup/cpu.max": "many 0\n"}, math.inf),
    ],
)
def test_the_smallest_cpu_limit_of_the_control_groups_counts(tmp_path, files, cores):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert cores_of_control_group(tmp_path) == cores


def test_ranks_of_a_machine_share_its_cores(monkeypatch):
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")
    assert 1 <= cores_of_this_rank() == available_cores() <= os.cpu_count()
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1000")
    assert cores_of_this_rank() == 1
