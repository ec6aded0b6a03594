"""Lightning with every way to cut, validate, accumulate and stop, on 1, 2 and 3 devices: `npm run test:long torch2`.

Each case trains once with a checkpoint at every event of a training. Runs that resume from them must get exactly the
batches that were left, on any number of devices.
"""

import pytest
from frameworks import HEAD, global_batches, needs, numbers_of, pack_numbered, run_program

SAMPLES = 51
#: Batches of an epoch: 12 rows over all devices.
BATCHES = 5

pytestmark = [pytest.mark.time_limit(1200), needs("lightning")]


@pytest.fixture(scope="module")
def numbered(tmp_path_factory):
    return pack_numbered(tmp_path_factory.mktemp("numbered"), SAMPLES)


#: Arguments of Trainer by case. By default, an epoch has five batches and then a validation.
CASES = {
    "whole epochs": {},
    "cut short": {"limit_train_batches": 3},
    "cut to a share": {"limit_train_batches": 0.5},
    "validated twice": {"val_check_interval": 2},
    "validated by share": {"val_check_interval": 0.5},
    "validated across epochs": {"val_check_interval": 3, "check_val_every_n_epoch": None},
    "accumulated": {"accumulate_grad_batches": 2},
    "accumulated, cut short, validated": {
        "accumulate_grad_batches": 3, "limit_train_batches": 4, "val_check_interval": 2
    },
    "seldom validated": {"check_val_every_n_epoch": 2},
    "validation cut short": {"limit_val_batches": 2},
    "all checked before": {"num_sanity_val_steps": -1},
    "reloaded": {"reload_dataloaders_every_n_epochs": 1, "limit_train_batches": 4},
    "by steps": {"max_steps": 8, "max_epochs": -1},
}  # fmt: skip

PROGRAM = """
import glob
import lightning
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from shardtool.lightning import DataModule

class Module(lightning.LightningModule):
    def __init__(self, what):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.zeros(()))
        self.what, self.begun, self.validations = what, 0, 0

    def training_step(self, batch, number):
        self.begun += 1
        see(f"{self.what} train", batch.images, batch.labels, batch.valid)
        return self.scale * 1.0

    def on_validation_start(self):
        self.validations += 1

    def validation_step(self, batch, number, dataloader_idx=0):
        sanity = " sanity" if self.trainer.sanity_checking else ""
        see(f"{self.what} val{sanity} {self.validations} {dataloader_idx}", batch.images, batch.labels, batch.valid)

    def on_fit_end(self):
        if OPTIONS.get("each saves"):
            save(self.global_rank)

    def test_step(self, batch, number):
        see(f"{self.what} test", batch.images, batch.labels, batch.valid)

    def predict_step(self, batch, number):
        see(f"{self.what} predict", batch.images, batch.labels, batch.valid)

    def on_save_checkpoint(self, checkpoint):
        checkpoint["begun"] = self.begun

    def on_load_checkpoint(self, checkpoint):
        self.begun = checkpoint["begun"]

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

class EveryEvent(Callback):
    # Checkpoints at points where a user's own code might save one.
    def __init__(self, folder):
        self.folder = folder

    def save(self, trainer, model, event):
        trainer.save_checkpoint(os.path.join(self.folder, f"{event}-{model.begun}-{trainer.current_epoch}.ckpt"))

    def on_train_start(self, trainer, model):
        self.save(trainer, model, "start")

    # Not in on_train_epoch_start: from there, Lightning itself skips the epoch, whatever the data.

    def on_train_batch_end(self, trainer, model, *_):
        self.save(trainer, model, "batch end")

    def on_validation_end(self, trainer, model):
        if not trainer.sanity_checking:
            self.save(trainer, model, "validation end")

    def on_train_epoch_end(self, trainer, model):
        self.save(trainer, model, "epoch end")

    def on_train_end(self, trainer, model):
        self.save(trainer, model, "end")

class Kept(DataModule):
    # Some hundred runs of a process share their readers.
    def teardown(self, stage):
        pass

def data_module(kind=Kept):
    def val(**options):
        return shardtool.iterable_dataset(PLACE, global_batch_size=12, workers=1, **options)
    return kind(
        shardtool.iterable_dataset(PLACE, seed=3, transform=RANDOM, global_batch_size=12, workers=1),
        val=[val(shuffle=False), val(seed=5)], test=val(shuffle=False), predict=val(shuffle=False),
    )

def trainer_of(case, callbacks=()):
    return lightning.Trainer(
        accelerator="cpu", devices=OPTIONS["devices"], strategy=OPTIONS["strategy"], logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, default_root_dir=OUT,
        callbacks=list(callbacks), **{"max_epochs": 3, **case},
    )

def fit(name, case, data):
    checkpoints = os.path.join(OPTIONS["checkpoints"], name)
    if not OPTIONS["resume"]:
        os.makedirs(checkpoints, exist_ok=True)
        trainer_of(case, [EveryEvent(checkpoints)]).fit(Module(name), data)
        return
    # Different ones for each case, so that all cases together cover every position.
    files = sorted(glob.glob(os.path.join(glob.escape(checkpoints), OPTIONS.get("only", "*.ckpt"))))
    for file in files[len(name) % OPTIONS["every"] :: OPTIONS["every"]]:
        begun = torch.load(file, weights_only=False)["begun"]
        event = os.path.basename(file)
        SEEN.append([f"{name}/{event}", begun])
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            trainer_of(case).fit(Module(f"{name}/{event}"), data, ckpt_path=file, weights_only=False)
        SEEN.append([f"{name}/{event} warned", [str(one.message) for one in warned]])
"""

RUN_CASES = """
if __name__ == "__main__":
    data = data_module()
    for name, case in OPTIONS["cases"].items():
        fit(name, case, data)
        save(os.environ.get("RANK", "0"))
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
"""


def train(numbered, folder, devices, cases, checkpoints, resume, every=4):
    options = {"devices": devices, "strategy": "ddp" if devices > 1 else "auto", "resume": resume}
    options.update(cases=cases, checkpoints=str(checkpoints), every=every)
    return run_program(HEAD + PROGRAM + RUN_CASES, numbered, folder, options, devices if devices > 1 else None)


def validations_of(ranks, what):
    """The numbers that each validation has counted, by the validation's number."""
    names = {name for name, _ in ranks[0] if name.startswith(f"{what} val ")}
    return {name: sorted(numbers_of(global_batches(ranks, name))) for name in names}


def assert_whole(ranks, name, case):
    """An epoch has each sample once, or the part of the case, and epochs differ. Validations have each sample."""
    batches = global_batches(ranks, f"{name} train")
    per_epoch = {"cut short": 3, "cut to a share": 2, "reloaded": 4}.get(name, case.get("limit_train_batches", BATCHES))
    assert len(batches) == (8 if name == "by steps" else 3 * per_epoch), name
    epochs = [batches[start : start + per_epoch] for start in range(0, len(batches), per_epoch)]
    assert len({tuple(numbers_of(epoch)) for epoch in epochs}) == len(epochs)
    for epoch in epochs:
        numbers = numbers_of(epoch)
        assert len(set(numbers)) == len(numbers) and (len(epoch) < BATCHES or len(numbers) == SAMPLES), name
    validations = {of: numbers for of, numbers in validations_of(ranks, name).items() if " sanity " not in of}
    # Two datasets, and at least one validation; with a seed the order of the second one differs.
    assert len(validations) >= 2
    for of, numbers in validations.items():
        if case.get("limit_val_batches") is None:
            assert numbers == list(range(SAMPLES)), of
        else:
            assert len(set(numbers)) == len(numbers) == 24, of
    return batches


def assert_resumed(ranks, name, case, whole):
    """Each resumed run gets the remaining batches, and validates on each sample. Returns the number of runs."""
    resumed = [(what, begun) for what, begun in ranks[0] if what.startswith(f"{name}/") and what.endswith(".ckpt")]
    for what, begun in resumed:
        assert global_batches(ranks, f"{what} train") == whole[begun:], what
        for of, numbers in validations_of(ranks, what).items():
            if case.get("limit_val_batches") is None and " sanity " not in of:
                assert numbers == list(range(SAMPLES)), of
        warned = [text for seen, texts in ranks[0] if seen == f"{what} warned" for text in texts]
        assert not [text for text in warned if "not resumable" in text or "of this DataModule" in text], warned
    return len(resumed)


def test_lightning_resumes_from_a_checkpoint_of_any_place_with_every_way_to_cut_and_validate(numbered, tmp_path):
    checkpoints = tmp_path / "checkpoints"
    whole = train(numbered, tmp_path / "whole", 1, CASES, checkpoints, resume=False)
    rest = train(numbered, tmp_path / "rest", 1, CASES, checkpoints, resume=True)
    for name, case in CASES.items():
        assert assert_resumed(rest, name, case, assert_whole(whole, name, case)) >= 3, name


#: The cases of several devices, whose runs take longer.
CASES_OF_SEVERAL = {name: CASES[name] for name in ("accumulated, cut short, validated", "validated twice")}


@pytest.mark.parametrize("devices", [2, 3])
def test_lightning_resumes_from_a_checkpoint_of_any_place_on_other_numbers_of_devices(numbered, tmp_path, devices):
    checkpoints = tmp_path / "checkpoints"
    whole = train(numbered, tmp_path / "whole", devices, CASES_OF_SEVERAL, checkpoints, resume=False)
    batches = {name: assert_whole(whole, name, case) for name, case in CASES_OF_SEVERAL.items()}
    for others in {1, 2, 3} if devices == 2 else {2}:
        rest = train(numbered, tmp_path / f"rest-{others}", others, CASES_OF_SEVERAL, checkpoints, resume=True, every=8)
        for name, case in CASES_OF_SEVERAL.items():
            assert assert_resumed(rest, name, case, batches[name]) >= 3, name


AGAIN = """
class Stops(Callback):
    def on_train_batch_end(self, trainer, model, *_):
        if model.begun == 7:
            raise ValueError("stops here")

def run(what, data, *callbacks, trainer=None):
    trainer = trainer or trainer_of({"max_epochs": 2, "limit_val_batches": 0}, callbacks)
    try:
        trainer.fit(Module(what), data)
    except ValueError as error:
        SEEN.append(["stopped", str(error)])
    return trainer

if __name__ == "__main__":
    data = data_module(DataModule)
    run("first", data)
    trainer = run("second", data)
    trainer.fit_loop.max_epochs = 3
    run("more", data, trainer=trainer)
    run("stopped", data, Stops())
    run("after", data)
    run("of three", data, trainer=trainer_of({"max_epochs": 3, "limit_val_batches": 0}))
    trainer_of({}).test(Module("once"), data)
    trainer_of({}).predict(Module("once"), data)
    save(os.environ.get("RANK", "0"))
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
"""


@pytest.mark.parametrize("devices", [1, 3])
def test_each_trainer_of_lightning_begins_with_the_first_epoch_and_tests_on_each_sample_once(
    numbered, tmp_path, devices
):
    options = {"devices": devices, "strategy": "ddp" if devices > 1 else "auto"}
    ranks = run_program(HEAD + PROGRAM + AGAIN, numbered, tmp_path, options, devices if devices > 1 else None)
    three = global_batches(ranks, "of three train")
    assert len({tuple(numbers_of(three[start : start + BATCHES])) for start in (0, 5, 10)}) == 3
    for what, batches in (("first", three[:10]), ("second", three[:10]), ("more", three[10:]), ("after", three[:10])):
        assert global_batches(ranks, f"{what} train") == batches, what
    assert global_batches(ranks, "stopped train") == three[:7] and ["stopped", "stops here"] in ranks[0]
    for what in ("once test", "once predict"):
        assert sorted(numbers_of(global_batches(ranks, what))) == list(range(SAMPLES))


SPAWNED = """
if __name__ == "__main__":
    # Processes that are started here import this program and have its options.
    fit("spawned", {"val_check_interval": 2}, data_module(DataModule))
"""


@pytest.mark.parametrize("strategy", ["ddp_spawn", "ddp_fork"])
def test_lightning_with_three_processes_that_it_starts_resumes_in_an_epoch(numbered, tmp_path, strategy):
    """Each process saves what it has seen at the end of its training."""
    checkpoints = tmp_path / "checkpoints"
    options = {"devices": 3, "strategy": strategy, "checkpoints": str(checkpoints), "each saves": True, "every": 1}
    whole = run_program(HEAD + PROGRAM + SPAWNED, numbered, tmp_path / "whole", {**options, "resume": False})
    assert len(whole) == 3
    batches = assert_whole(whole, "spawned", {"val_check_interval": 2})
    rest = run_program(
        HEAD + PROGRAM + SPAWNED, numbered, tmp_path / "rest", {**options, "resume": True, "only": "batch end-7-1.ckpt"}
    )
    assert global_batches(rest, "spawned/batch end-7-1.ckpt train") == batches[7:]
