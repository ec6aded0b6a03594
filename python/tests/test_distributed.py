"""Ranks under torchrun."""

import json
import os

import pytest

import shardtool

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
    # With Python 3.11 torch 1.13 loses the default of these.
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


GROUP = """
import json, os, sys
import shardtool, torch

def rank_of_two(rank, place, out, loader_of_parent):
    seen = {"alone": len(loader_of_parent)}
    torch.distributed.init_process_group("gloo", init_method=f"file://{out}/meeting", rank=rank, world_size=2)
    seen["length"] = len(loader_of_parent)
    seen["dataset"] = [number for batch in loader_of_parent for number in batch.indices[batch.valid].tolist()]
    with shardtool.Loader(place, batch_size=16) as loader:
        seen["loader"] = [number for batch in loader for number in batch.indices[batch.valid].tolist()]
    os.environ.update(RANK="0", WORLD_SIZE="1")
    try:
        len(loader)
    except shardtool.OptionError as error:
        seen["error"] = str(error)
    loader.close()
    with open(os.path.join(out, f"group-{rank}.json"), "w") as file:
        json.dump(seen, file)
    torch.distributed.destroy_process_group()

if __name__ == "__main__":
    dataset = shardtool.iterable_dataset(sys.argv[1], batch_size=16)
    next(iter(dataset))
    torch.multiprocessing.start_processes(rank_of_two, (*sys.argv[1:3], dataset), nprocs=2, start_method="fork")
"""


def test_the_rank_is_that_of_a_process_group_once_there_is_one(run_script, small, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(GROUP)
    run_script(program, small, tmp_path, cwd=tmp_path)
    ranks = [json.loads((tmp_path / f"group-{rank}.json").read_text()) for rank in range(2)]
    assert [(rank["alone"], rank["length"]) for rank in ranks] == [(13, 7)] * 2
    for kind in ("dataset", "loader"):
        assert sorted(ranks[0][kind] + ranks[1][kind]) == list(range(200))
    for number, rank in enumerate(ranks):
        assert rank["error"].startswith(
            f"torch.distributed says that this is rank {number} of 2, but RANK and WORLD_SIZE say that it is rank 0 "
            "of 1: pass rank and world_size as options"
        )


@pytest.mark.usefixtures("lent_readers")
def test_the_rank_is_read_when_a_loop_begins(small, monkeypatch):
    with shardtool.Loader(small, batch_size=16, output="numpy", workers=1) as loader:
        assert len(loader) == 13
        monkeypatch.setenv("LOCAL_RANK", "1")
        monkeypatch.setenv("WORLD_SIZE", "2")
        first = [batch.indices for batch in loader]
        assert len(first) == len(loader) == 7
        monkeypatch.setenv("LOCAL_RANK", "0")
        loader.set_epoch(0)
        second = [batch.indices for batch in loader]
    assert not {*first[0].tolist()} & {*second[0].tolist()}


def test_the_ranks_of_a_machine_share_its_cores(monkeypatch, small):
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1000")
    with shardtool.Loader(small, batch_size=16) as loader:
        assert loader.info()["workers"] == 1
    with shardtool.Loader(small, batch_size=16, workers=3) as loader:
        assert loader.info()["workers"] == 3


def test_rank_and_world_size_are_options_too(small):
    keys = []
    for rank in range(3):
        with shardtool.Loader(small, rank=rank, world_size=3, batch_size=16, with_keys=True, output="numpy") as loader:
            keys += [key for batch in loader for key, valid in zip(batch.keys, batch.valid) if valid]
    assert len(keys) == len(set(keys)) == 200
