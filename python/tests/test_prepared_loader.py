"""The loader for Accelerate, with a stub for Accelerate that has the few required attributes."""

import sys
from types import ModuleType

import pytest
import python_functions as functions
import torch
from torch.utils.data import DataLoader

import shardtool

pytestmark = pytest.mark.usefixtures("lent_readers")

OPTIONS = {"batch_size": 64, "seed": 4, "workers": 1}


class GradientState:
    """The loaders that are in a loop, the innermost last."""

    def __init__(self):
        self.loaders = []

    @property
    def active_dataloader(self):
        return self.loaders[-1] if self.loaders else None

    def _add_dataloader(self, loader):
        self.loaders.append(loader)

    def _remove_dataloader(self, loader):
        self.loaders.remove(loader)


class Accelerator:
    process_index, num_processes = 1, 2
    device, device_placement, split_batches = torch.device("cpu"), True, False

    def __init__(self, gradient_state):
        self.gradient_state = gradient_state
        self.registered = []

    def register_for_checkpointing(self, loader):
        self.registered.append(loader)

    def gather(self, values):
        return values

    def gather_for_metrics(self, values, use_gather_object=False):
        return values


@pytest.fixture
def accelerator(monkeypatch):
    state = GradientState()
    module = ModuleType("accelerate.state")
    module.GradientState = lambda: state
    monkeypatch.setitem(sys.modules, "accelerate", ModuleType("accelerate"))
    monkeypatch.setitem(sys.modules, "accelerate.state", module)
    return Accelerator(state)


def test_a_state_is_that_of_the_batch_in_use_though_the_loader_reads_ahead(small, accelerator):
    from shardtool.accelerate import prepare

    loader = prepare(accelerator, small, **OPTIONS)
    assert accelerator.registered == [loader] and len(loader) == 2 and len(loader.dataset) == 200
    whole, flags, counted = [], [], 0
    for batch in loader:
        whole.append(batch.indices.tolist())
        flags.append(loader.end_of_dataloader)
        counted += len(accelerator.gather_for_metrics(batch.labels))
        if len(whole) == 1:
            state = loader.state_dict()
    # 200 samples of two processes: this one has 100 in 128 rows.
    assert flags == [False, True] and counted == 100 and accelerator.gradient_state.loaders == []
    loader.load_state_dict(state)
    assert [batch.indices.tolist() for batch in loader] == whole[1:]
    # The result of Accelerate's `skip_first_batches` reads the dataset.
    loader.set_epoch(0)
    assert loader._skip(1) == 0
    assert [batch.indices.tolist() for batch in loader._loop()] == whole[1:]
    loader.load_state_dict(state)
    with pytest.raises(shardtool.OptionError, match="the loaded state is enough"):
        loader._skip(2)
    with pytest.warns(UserWarning, match=r"set_epoch\(3\) leaves the state that was loaded"):
        loader.load_state_dict(state)
        loader.set_epoch(3)
    loader.close()


def test_after_the_last_batch_of_an_epoch_skipping_leaves_nothing_and_the_next_epoch_follows(small, accelerator):
    """The last batch is incomplete, or it is not."""
    from shardtool.accelerate import prepare

    for rows in (64, 50):
        loader = prepare(accelerator, small, checkpoint=False, **{**OPTIONS, "batch_size": rows})
        list(loader)
        state = loader.state_dict()
        following = [batch.indices.tolist() for batch in loader]
        for loaded in (state, None):
            if loaded is None:
                loader.set_epoch(0)
            else:
                loader.load_state_dict(loaded)
            assert loader._skip(2) == 0
            assert list(loader._loop()) == []
            assert [batch.indices.tolist() for batch in loader] == following
        loader.close()


def test_batches_are_skipped_in_the_epoch_that_follows(small, accelerator):
    from shardtool.accelerate import prepare

    loader = prepare(accelerator, small, checkpoint=False, **OPTIONS)
    epochs = [[batch.indices.tolist() for batch in loader] for _ in range(3)]
    loader.set_epoch(0)
    list(loader)
    state = loader.state_dict()
    # After a loop, and in an epoch after that of a loaded state.
    for prepared_by in (lambda: None, lambda: loader.load_state_dict(state) or loader.set_epoch(1)):
        prepared_by()
        assert loader._skip(1) == 0
        assert [batch.indices.tolist() for batch in loader._loop()] == epochs[1][1:]
        assert [batch.indices.tolist() for batch in loader] == epochs[2]
    loader.close()


def test_an_epoch_that_a_loaded_state_has_finished_is_empty_without_a_warning(small, accelerator, recwarn):
    from shardtool.accelerate import prepare

    loader = prepare(accelerator, small, checkpoint=False, **OPTIONS)
    list(loader)
    state = loader.state_dict()
    following = [batch.indices.tolist() for batch in loader]
    loader.load_state_dict(state)
    loader.set_epoch(0)
    assert list(loader) == []
    loader.set_epoch(1)
    assert [batch.indices.tolist() for batch in loader] == following
    assert [str(one.message) for one in recwarn] == []
    loader.close()


def test_batches_after_skipped_ones_are_what_collate_returned(small, accelerator):
    from shardtool.accelerate import prepare

    loader = prepare(accelerator, small, checkpoint=False, collate=lambda batch: (batch.labels, "text"), **OPTIONS)
    # Accelerate's `skip_first_batches` makes a DataLoader with the attributes of the loader.
    others = {name: getattr(loader, name, None) for name in ("batch_size", "collate_fn")}
    assert [type(batch) for batch in DataLoader(loader.dataset, **others)] == [tuple, tuple]
    loader.close()


def test_rows_at_which_a_function_fails_are_not_gathered_for_metrics(small, accelerator):
    from shardtool.accelerate import prepare

    failing = {"python_transform": functions.raises, "python_workers": 1, "on_bad": "replace"}
    loader = prepare(accelerator, small, checkpoint=False, **failing, **OPTIONS)
    valid, counted = [], []
    for batch in loader:
        valid.append(int(batch.valid.sum()))
        counted.append(len(accelerator.gather_for_metrics(batch.labels)))
    assert valid[0] < 64 and counted == valid
    loader.close()


def test_with_split_batches_the_rows_are_those_of_all_processes(small, accelerator):
    from shardtool.accelerate import prepare

    accelerator.split_batches = True
    loader = prepare(accelerator, small, **OPTIONS)
    assert loader.global_batch_size == 64 and len(loader) == 4
    assert [len(batch.labels) for batch in loader] == [32] * 4
    loader.close()


def test_processes_that_would_each_train_on_all_samples_are_noticed(small, accelerator, monkeypatch):
    from shardtool.accelerate import prepare

    accelerator.process_index, accelerator.num_processes = 0, 1
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(shardtool.OptionError, match="WORLD_SIZE is 2, but this Accelerator has a single process"):
        prepare(accelerator, small, **OPTIONS)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"rank": 0, "world_size": 2}, "Accelerate's process is 1 of 2: remove both"),
        ({"last_batch": "partial"}, "cannot be gathered"),
        ({"epochs_per_loop": 2}, "remove epochs_per_loop"),
        ({"output": "numpy"}, "remove output='numpy'"),
    ],
)
def test_options_that_do_not_go_with_accelerate_are_named(small, accelerator, options, reason):
    from shardtool.accelerate import prepare

    with pytest.raises(shardtool.OptionError, match=reason):
        prepare(accelerator, small, **options)
