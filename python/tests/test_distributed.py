"""Ranks under torchrun."""

import json
import os

import pytest

import shardtool
from shardtool.for_reader import options_for_reader

PROGRAM = """
import json, os, sys
import shardtool
rank = os.environ["RANK"]
with shardtool.Loader(sys.argv[1], batch_size=16, with_keys=True, output="numpy") as loader:
    for epoch in range(2):
        loader.set_epoch(epoch)
        batches = 0
        keys = []
        for batch in loader:
            batches += 1
            keys += [key for key, valid in zip(batch.keys, batch.valid.tolist()) if valid]
        seen = {"epoch": epoch, "rank": rank, "length": len(loader), "batches": batches, "keys": keys}
        with open(os.path.join(sys.argv[2], f"{epoch}-{rank}.json"), "w") as file:
            json.dump({**seen, "workers": loader.info()["workers"]}, file)
"""


def test_two_processes_under_torchrun_see_every_sample_once_in_equally_many_batches(run_script, small, tmp_path):
    program, torchrun = tmp_path / "program.py", tmp_path / "torchrun.py"
    program.write_text(PROGRAM)
    torchrun.write_text("from torch.distributed.run import main\nmain()\n")
    # torch 1.13 loses the default of these under Python 3.11.
    options = ["--redirects", "1", "--tee", "1", "--log_dir", tmp_path / "logs"]
    run_script(torchrun, "--nproc_per_node", 2, "--standalone", *options, program, small, tmp_path, cwd=tmp_path)
    orders = []
    for epoch in range(2):
        ranks = [json.loads((tmp_path / f"{epoch}-{rank}.json").read_text()) for rank in range(2)]
        assert [rank["batches"] for rank in ranks] == [7, 7]
        assert [rank["length"] for rank in ranks] == [7, 7]
        keys = ranks[0]["keys"] + ranks[1]["keys"]
        assert len(keys) == len(set(keys)) == 200
        orders.append(keys)
        assert [rank["workers"] for rank in ranks] == [max(1, len(os.sched_getaffinity(0)) // 2)] * 2
    assert orders[0] != orders[1]


@pytest.mark.parametrize(("ranks", "workers"), [("1", None), ("2", 4), ("8", 1), ("100", 1), ("", None)])
def test_the_ranks_of_a_machine_share_its_cores(monkeypatch, ranks, workers):
    monkeypatch.setenv("LOCAL_WORLD_SIZE", ranks)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert options_for_reader({}, slots_in_use=0).get("workers") == workers
    assert options_for_reader({"workers": 3}, slots_in_use=0)["workers"] == 3


def test_rank_and_world_size_are_options_too(small):
    keys = []
    for rank in range(3):
        with shardtool.Loader(small, rank=rank, world_size=3, batch_size=16, with_keys=True, output="numpy") as loader:
            keys += [key for batch in loader for key, valid in zip(batch.keys, batch.valid) if valid]
    assert len(keys) == len(set(keys)) == 200
