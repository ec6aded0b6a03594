"""The modules for training frameworks, with the frameworks themselves: `npm run test:long torch2` has them.

51 samples over 1, 2 and 3 processes, in batches of 12 rows over all of them: the last batch of an epoch is padded.
"""

import numpy as np
import pytest
from frameworks import HEAD, global_batches, needs, numbers_of, pack_numbered, run_program

import shardtool
from datasets import CHECKOUT

SAMPLES = 51
RANKS = [1, 2, 3]

pytestmark = pytest.mark.time_limit(1200)


@pytest.fixture(scope="module")
def numbered(tmp_path_factory):
    return pack_numbered(tmp_path_factory.mktemp("numbered"), SAMPLES)


def assert_epochs(batches_of_epochs):
    """Each epoch has each sample once, in another order, and with other crops."""
    orders = [numbers_of(batches) for batches in batches_of_epochs]
    assert all(sorted(order) == list(range(SAMPLES)) for order in orders), orders
    assert len({tuple(order) for order in orders}) == len(orders)


ACCELERATE = """
from accelerate import Accelerator, skip_first_batches
from accelerate.utils import DataLoaderConfiguration
import shardtool.accelerate

def prepared(name):
    dispatch = {"unset": None, "sent": True, "own": False}[name]
    config = DataLoaderConfiguration(dispatch_batches=dispatch)
    accelerator = Accelerator(cpu=True, dataloader_config=config, gradient_accumulation_steps=4)
    options = {"global_batch_size": 12, "transform": RANDOM, "seed": 3, "workers": 1}
    loader = shardtool.accelerate.prepare(accelerator, PLACE, **options)
    return accelerator, accelerator.prepare(loader)

def loop(what, loader, accelerator=None, stop=None):
    kept, seen_before = [], []
    for number, batch in enumerate(loader):
        if number == stop:
            break
        # Looks at each batch, and once more when all that follow were requested.
        see(what, batch.images, batch.labels, batch.valid)
        kept.append(batch)
        seen_before.append(SEEN[-1][1])
        if accelerator is not None:
            with accelerator.accumulate():
                SEEN.append([f"{what} sync", accelerator.sync_gradients])
    for batch, before in zip(kept, seen_before):
        assert lines(batch.images, batch.labels, batch.valid) == before

for name in OPTIONS["names"]:
    checkpoint = os.path.join(OPTIONS["checkpoints"], name)
    accelerator, loader = prepared(name)
    if OPTIONS["resume"]:
        accelerator.load_state(checkpoint)
        loop(f"{name} 1", loader)
        # Again, as scripts of Accelerate continue: the batches before are not skipped twice.
        accelerator.load_state(checkpoint)
        rest = skip_first_batches(loader, 2)
        loop(f"{name} 1 skipped", rest)
        # And without a state.
        loader.set_epoch(1)
        loop(f"{name} 1 skipped alone", accelerator.skip_first_batches(loader, 2), accelerator)
        loop(f"{name} 2", loader)
    else:
        assert len(loader) == 5 and len(loader.dataset) == 51
        loop(f"{name} 0", loader, accelerator)
        # The state is that of the batch in the loop, not of the one that was read ahead.
        for number, batch in enumerate(loader):
            see(f"{name} 1", batch.images, batch.labels, batch.valid)
            if number == 1:
                accelerator.save_state(checkpoint)
        loop(f"{name} 2", loader)
        evaluate = shardtool.accelerate.prepare(accelerator, PLACE, global_batch_size=12, shuffle=False, workers=1)
        counted, pairs = [], []
        for images, labels in evaluate:
            numbers = images[:, 0, 0, 0]
            numbers, found = accelerator.gather_for_metrics((numbers, {"labels": labels}))
            assert torch.equal(found["labels"], numbers // 2)
            counted += numbers.tolist()
            pairs += accelerator.gather_for_metrics([int(label) for label in labels], use_gather_object=True)
        SEEN.append([f"{name} evaluated", counted])
        SEEN.append([f"{name} objects", pairs])
        evaluate.close()
    loader.close()
    accelerator.free_memory()
save(accelerator.process_index)
accelerator.end_training()
"""
NAMES = ["unset", "sent", "own"]


@needs("accelerate")
@pytest.mark.parametrize(("processes", "names"), [(2, NAMES), (3, NAMES[:1])])
def test_accelerate_reads_each_sample_once_and_resumes_with_any_number_of_processes(
    numbered, tmp_path, processes, names
):
    options = {"names": names, "checkpoints": str(tmp_path / "checkpoints")}
    whole = run_program(HEAD + ACCELERATE, numbered, tmp_path / "whole", {**options, "resume": False}, processes)
    for name in names:
        epochs = [global_batches(whole, f"{name} {epoch}") for epoch in range(3)]
        assert_epochs(epochs)
        for seen in whole:
            of_name = dict(map(tuple, seen))
            assert sorted(of_name[f"{name} evaluated"]) == list(range(SAMPLES))
            assert sorted(of_name[f"{name} objects"]) == sorted(number // 2 for number in range(SAMPLES))
            # Accelerate accumulates over 4 of the 5 batches, and then steps at the end of the epoch.
            assert [flag for what, flag in seen if what == f"{name} 0 sync"] == [False, False, False, True, True]
    for ranks in RANKS:
        rest = run_program(HEAD + ACCELERATE, numbered, tmp_path / f"rest-{ranks}", {**options, "resume": True}, ranks)
        for name in names:
            for what in (f"{name} 1", f"{name} 1 skipped", f"{name} 1 skipped alone"):
                assert global_batches(rest, what) == global_batches(whole, f"{name} 1")[2:], (ranks, what)
            assert global_batches(rest, f"{name} 2") == global_batches(whole, f"{name} 2")
            assert [flag for what, flag in rest[0] if what == f"{name} 1 skipped alone sync"] == [False, False, True]


TRAPS = """
from accelerate import Accelerator, skip_first_batches
from accelerate.utils import DataLoaderConfiguration
import shardtool.accelerate

accelerator = Accelerator(cpu=True)
def error_of(action):
    try:
        action()
    except (shardtool.OptionError, UserWarning) as error:
        return str(error)
    return None

def note(name, action):
    SEEN.append([name, error_of(action)])

prepare = lambda **options: shardtool.accelerate.prepare(accelerator, PLACE, checkpoint=False, **options)
note("rank", lambda: prepare(rank=1, world_size=2))
note("epochs", lambda: prepare(epochs_per_loop=2))
note("output", lambda: prepare(output="numpy"))

loader = prepare(batch_size=12, seed=3)
for number, batch in enumerate(loader):
    if number == 1:
        state = loader.state_dict()
        break
loader.load_state_dict(state)
note("other skip", lambda: list(skip_first_batches(loader, 3)))
loader.load_state_dict({**state, "epoch": 4})
warnings.simplefilter("error")
note("set_epoch", lambda: loader.set_epoch(0))
warnings.simplefilter("default")

# A DataLoader that Accelerate wraps: it counts loops from 0, whatever was loaded, and skips once more.
def wrapped():
    dataset = shardtool.iterable_dataset(PLACE, batch_size=12, seed=3)
    return dataset, accelerator.prepare(DataLoader(dataset, batch_size=None))

dataset, around = wrapped()
def numbers(batches):
    return [batch[0][:, 0, 0, 0].tolist() for batch in batches]

epochs = [numbers(around) for _ in range(3)]
dataset, around = wrapped()
dataset.load_state_dict({**state, "epoch": 1})
SEEN.append(["resumed", numbers(around) == epochs[1][2:]])
SEEN.append(["next", numbers(around) == epochs[2]])
dataset.load_state_dict({**state, "epoch": 1})
note("twice", lambda: list(skip_first_batches(around, 2)))
save(0)
"""


@needs("accelerate")
def test_traps_of_accelerate_are_named(numbered, tmp_path):
    [seen] = run_program(HEAD + TRAPS, numbered, tmp_path)
    said = dict(map(tuple, seen))
    assert "rank=1 and world_size=2, but Accelerate's process is 0 of 1" in said["rank"]
    assert "remove epochs_per_loop" in said["epochs"]
    assert "remove output='numpy'" in said["output"]
    assert "would continue after 36: remove skip_first_batches" in said["other skip"]
    assert "set_epoch(0) leaves the state that was loaded, which is in epoch 4" in said["set_epoch"]
    assert said["resumed"] is True and said["next"] is True
    assert "would skip as many again" in said["twice"]


TRAINER = """
from transformers import TrainingArguments
from shardtool.transformers import ShardTrainer

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.zeros(()))

    def forward(self, pixel_values, labels):
        valid = labels != -100
        if self.training:
            see("train", pixel_values, labels, valid)
        numbers = pixel_values[:, 0, 0, 0].float()
        return {"loss": numbers[valid].mean() + self.scale * 0, "logits": numbers}

def metrics(found):
    assert (found.predictions // 2 == found.label_ids).all()
    return {"numbers": found.predictions.tolist()}

world = int(os.environ["WORLD_SIZE"])
settings = TrainingArguments(
    output_dir=OPTIONS["checkpoints"], num_train_epochs=2, per_device_train_batch_size=OPTIONS["rows"] // world,
    per_device_eval_batch_size=12 // world, eval_strategy=OPTIONS["evaluate"], eval_steps=1, save_strategy="steps",
    save_steps=OPTIONS["save"], dataloader_num_workers=OPTIONS["workers"],
    logging_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True, label_names=["labels"],
    accelerator_config=OPTIONS["config"], gradient_accumulation_steps=OPTIONS["accumulate"],
    dataloader_drop_last=OPTIONS["drop"], restore_callback_states_from_checkpoint=OPTIONS["restore"], seed=7,
)
train = shardtool.iterable_dataset(PLACE, seed=3, transform=RANDOM, workers=1)
evaluate = shardtool.iterable_dataset(PLACE, shuffle=False, workers=1)
trainer = ShardTrainer(
    Model(), settings, train_dataset=train, eval_dataset={"a": evaluate}, compute_metrics=metrics,
)
try:
    trainer.train(resume_from_checkpoint=OPTIONS["resume"])
except shardtool.OptionError as error:
    SEEN.append(["error", str(error)])
for log in trainer.state.log_history:
    if "eval_a_numbers" in log:
        SEEN.append(["evaluated", [log["eval_a_loss"], log["eval_a_numbers"]]])
save(settings.process_index)
"""
TRAINER_OPTIONS = {
    **{"config": {}, "accumulate": 1, "drop": False, "rows": 12, "resume": None, "restore": False},
    **{"evaluate": "epoch", "save": 3, "workers": 0},
}


def train(numbered, folder, ranks, **options):
    return run_program(HEAD + TRAINER, numbered, folder, {**TRAINER_OPTIONS, **options}, ranks)


@needs("transformers", "accelerate")
@pytest.mark.parametrize("config", [{}, {"dispatch_batches": True}, {"dispatch_batches": False}])
def test_the_trainer_resumes_with_any_number_of_processes_and_evaluates_on_each_sample_once(numbered, tmp_path, config):
    checkpoints = tmp_path / "checkpoints"
    common = {"config": config, "checkpoints": str(checkpoints)}
    whole = train(numbered, tmp_path / "whole", 2, **common)
    batches = global_batches(whole, "train")
    assert_epochs([batches[:5], batches[5:]])
    for seen in whole:
        evaluated = [found for what, found in seen if what == "evaluated"]
        assert len(evaluated) == 2
        for loss, numbers in evaluated:
            assert sorted(numbers) == list(range(SAMPLES)) and loss == pytest.approx(25)
    # In the middle of the first epoch, and of the second.
    for ranks, step in zip(RANKS, (3, 9, 6)) if config == {} else [(2, 3)]:
        resume = {**common, "resume": str(checkpoints / f"checkpoint-{step}"), "restore": ranks == 2}
        rest = train(numbered, tmp_path / f"rest-{ranks}", ranks, **resume)
        assert global_batches(rest, "train") == batches[step:], (ranks, step)


@needs("transformers", "accelerate")
def test_the_trainer_accumulates_drops_the_last_batch_and_rejects_batches_of_other_sizes(numbered, tmp_path):
    common = {"accumulate": 2, "drop": True, "checkpoints": str(tmp_path / "checkpoints")}
    whole = train(numbered, tmp_path / "whole", 1, **common)
    batches = global_batches(whole, "train")
    # 51 samples are 4 whole batches of 12.
    assert len(batches) == 8 and all(len(batch) == 12 for batch in batches)
    checkpoint = str(tmp_path / "checkpoints" / "checkpoint-3")
    rest = train(numbered, tmp_path / "rest", 1, **common, resume=checkpoint)
    assert global_batches(rest, "train") == batches[6:]
    [refused] = train(numbered, tmp_path / "refused", 1, **common, resume=checkpoint, rows=24)
    assert "set per_device_train_batch_size so that 1 processes make 12 rows" in dict(map(tuple, refused))["error"]


@needs("transformers", "accelerate")
def test_the_trainer_accumulates_and_evaluates_in_an_epoch_and_resumes_with_any_number_of_processes(numbered, tmp_path):
    checkpoints = tmp_path / "checkpoints"
    common = {"accumulate": 2, "evaluate": "steps", "save": 1, "workers": 2, "checkpoints": str(checkpoints)}
    whole = train(numbered, tmp_path / "whole", 2, **common)
    batches = global_batches(whole, "train")
    assert_epochs([batches[:5], batches[5:]])
    for seen in whole:
        evaluated = [found for what, found in seen if what == "evaluated"]
        assert len(evaluated) == 6
        for loss, numbers in evaluated:
            assert sorted(numbers) == list(range(SAMPLES)) and loss == pytest.approx(25)
    # The three updates of an epoch are of two batches, of two, and of one.
    for ranks, step, trained in ((1, 1, 2), (3, 4, 7), (2, 5, 9), (3, 2, 4)):
        folder = tmp_path / f"rest-{ranks}-{step}"
        resume = {"resume": str(checkpoints / f"checkpoint-{step}"), "restore": ranks == 3}
        rest = train(numbered, folder, ranks, **{**common, **resume, "checkpoints": str(folder / "checkpoints")})
        assert global_batches(rest, "train") == batches[trained:], (ranks, step)


VIT = """
from transformers import TrainingArguments, ViTConfig, ViTForImageClassification
from shardtool.transformers import ShardTrainer

world = int(os.environ.get("WORLD_SIZE", "1"))
NORMALIZE = {"name": "normalize", "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}

class Trainer(ShardTrainer):
    def compute_loss(self, model, inputs, *args, **kwargs):
        images, labels = inputs["pixel_values"], inputs["labels"]
        numbers = ((images[:, 0, 0, 0] + 1) * 127.5).round().long()
        counts = labels != -100
        if labels.is_floating_point():
            wanted = ANSWERS[NAME](numbers)
            assert torch.equal(labels, wanted), (labels, wanted)
        else:
            assert torch.equal(labels[counts], numbers[counts] // 2)
        SEEN.append([f"{NAME} {'train' if model.training else 'evaluate'}", len(labels)])
        return super().compute_loss(model, inputs, *args, **kwargs)

def tags(numbers):
    hot = torch.zeros(len(numbers), 26)
    for row, number in enumerate(numbers.tolist()):
        hot[row, [number // 2, number % 26]] = 1
    return hot

#: The expected labels of the loader, by the number in the pixels.
ANSWERS = {"several classes": tags, "a number": lambda numbers: numbers / 4}
CASES = {
    "a class": (None, {}, 26),
    "several classes": ("multi_label_classification", {"labels": {"field": "tags.json", "classes": 26}}, 26),
    "a number": ("regression", {"labels": "age"}, 1),
}

def made(options, problem=None, count=26, **arguments):
    torch.manual_seed(0)
    transform = [{"name": "resize", "size": [8, 8]}, NORMALIZE]
    options = {"transform": transform, "workers": 1, **options}
    train = shardtool.iterable_dataset(PLACE, seed=3, **options)
    evaluate = shardtool.iterable_dataset(PLACE, shuffle=False, **options)
    config = ViTConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2, image_size=8, patch_size=4,
        num_labels=count, problem_type=problem,
    )
    settings = TrainingArguments(
        OUT, num_train_epochs=1, per_device_train_batch_size=12 // world, per_device_eval_batch_size=12 // world,
        use_cpu=True, report_to=[], save_strategy="no", logging_strategy="no", disable_tqdm=True, **arguments,
    )
    def metrics(found):
        return {"labels": found.label_ids.tolist(), "logits": found.predictions.tolist()}
    model = ViTForImageClassification(config)
    return Trainer(model, settings, train_dataset=train, eval_dataset=evaluate, compute_metrics=metrics)

for NAME, (problem, options, count) in CASES.items():
    trainer = made(options, problem, count)
    before, again = trainer.evaluate(), trainer.evaluate()
    assert abs(again["eval_loss"] - before["eval_loss"]) < 1e-6, (before["eval_loss"], again["eval_loss"])
    trainer.train()
    assert all(torch.isfinite(values).all() for values in trainer.model.parameters())
    SEEN.append([f"{NAME} evaluated", [before["eval_loss"], before["eval_labels"], before["eval_logits"]]])

NAME = "refused"
arrays = os.path.join(OUT, f"arrays-{os.environ.get('RANK', 0)}")
with shardtool.Writer(arrays, primary="npy") as writer:
    for number in range(24):
        writer.add(f"{number}", npy=torch.full((3,), number).numpy())
def error_of(place, options):
    global PLACE
    usual, PLACE = PLACE, place
    try:
        made(options).evaluate()
    except shardtool.OptionError as error:
        return str(error)
    finally:
        PLACE = usual
SEEN.append(["mix", error_of(PLACE, {"mix": {"name": "mixup", "alpha": 0.4}})])
SEEN.append(["skip", error_of(PLACE, {"labels": "age", "on_bad": "skip"})])
SEEN.append(["arrays", error_of(arrays, {"transform": None})])
def order_of(strategy):
    try:
        made({}, train_sampling_strategy=strategy).get_train_dataloader()
    except shardtool.OptionError as error:
        return str(error)
SEEN.append(["orders", [order_of("group_by_length"), order_of("sequential")]])
save(os.environ.get("RANK", "0"))
"""


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    """49 numbered images: in the last batch of an evaluation, only one process has a valid row."""
    folder = tmp_path_factory.mktemp("labelled") / "shards"
    with shardtool.Writer(folder, classes=[f"{n:02}" for n in range(26)], columns={"age": "double"}) as writer:
        for number in range(49):
            tags = [number // 2, number % 26]
            image = np.full((16, 16, 3), number, np.uint8)
            writer.add(f"{number:02}", image, label=number // 2, columns={"age": number / 4}, **{"tags.json": tags})
    return folder


@needs("transformers", "accelerate")
def test_the_trainer_has_the_same_loss_with_any_number_of_processes_and_every_kind_of_label(labelled, tmp_path):
    losses = []
    for ranks in RANKS:
        all_seen = run_program(HEAD + VIT, labelled, tmp_path / f"{ranks}", {}, ranks)
        for seen in all_seen:
            said = dict(map(tuple, seen))
            for name in ("a class", "several classes", "a number"):
                loss, labels, logits = said[f"{name} evaluated"]
                assert len(labels) == len(logits) == 49
                if name == "a class":
                    assert sorted(labels) == [number // 2 for number in range(49)]
                    own = -np.array([row[label] - np.logaddexp.reduce(row) for row, label in zip(logits, labels)])
                    assert loss == pytest.approx(own.mean(), rel=1e-5)
                    losses.append(loss)
            assert "mix='mixup' mixes two: pass a data_collator" in said["mix"]
            assert "rows that on_bad='skip' leaves empty" in said["skip"]
            assert "one image for each sample, which this dataset does not yield" in said["arrays"]
            by_length, in_order = said["orders"]
            assert "so group_by_length would have no effect: remove it" in by_length
            assert "create the dataset with shuffle=False" in in_order
    assert losses == pytest.approx([losses[0]] * 6, rel=1e-5)


LIGHTNING = """
import lightning
from lightning.pytorch.callbacks import ModelCheckpoint
from shardtool.lightning import DataModule

class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.zeros(()))
        self.counted = []

    def training_step(self, batch, number):
        see(f"train {self.current_epoch}", batch.images, batch.labels, batch.valid)
        return self.scale * 0

    def validation_step(self, batch, number):
        if not self.trainer.sanity_checking:
            see(f"val {self.current_epoch}", batch.images, batch.labels, batch.valid)
            self.log("valid", batch.valid.sum().float(), sync_dist=True, reduce_fx="sum")

    def test_step(self, batch, number):
        see("test", batch.images, batch.labels, batch.valid)

    def on_fit_end(self):
        save(f"fit-{self.global_rank}")

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

if __name__ == "__main__":
    rows = {"global_batch_size": OPTIONS["rows"], "workers": 1}
    data = DataModule(
        shardtool.iterable_dataset(PLACE, seed=3, transform=RANDOM, **rows),
        val=shardtool.iterable_dataset(PLACE, shuffle=False, **rows),
    )
    checkpoint = ModelCheckpoint(OPTIONS["checkpoints"], "{step}", every_n_train_steps=1, save_top_k=-1)
    trainer = lightning.Trainer(
        accelerator="cpu", devices=OPTIONS["devices"], strategy=OPTIONS["strategy"], max_epochs=2, logger=False,
        callbacks=[checkpoint] if OPTIONS["resume"] is None else [], enable_checkpointing=OPTIONS["resume"] is None,
        enable_progress_bar=False, enable_model_summary=False, default_root_dir=OUT,
    )
    try:
        trainer.fit(Module(), data, ckpt_path=OPTIONS["resume"], weights_only=False)
    except shardtool.OptionError as error:
        SEEN.append(["error", str(error)])
        save("error")
"""


LIGHTNING_LIMIT = """
import lightning
from lightning.pytorch.callbacks import ModelCheckpoint
from shardtool.lightning import DataModule

class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.zeros(()))

    def training_step(self, batch, number):
        see(f"{self.what} {self.current_epoch}", batch.images, batch.labels, batch.valid)
        return self.scale * 0

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

def fit(what, kind=DataModule, resume=None, **options):
    model = Module()
    model.what = what
    data = kind(shardtool.iterable_dataset(PLACE, seed=3, transform=RANDOM, global_batch_size=12, workers=1))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        lightning.Trainer(
            accelerator="cpu", devices=1, max_epochs=3, logger=False, enable_progress_bar=False,
            enable_model_summary=False, default_root_dir=OUT, enable_checkpointing="callbacks" in options,
            **{"limit_train_batches": 2, **options},
        ).fit(model, data, ckpt_path=resume, weights_only=False)
    own = ("make train with", "state of this DataModule")
    said = [str(one.message) for one in warned]
    SEEN.append([f"{what} warned", [one for one in said if any(text in one for text in own)]])

class Other(DataModule):
    pass

at_step = ModelCheckpoint(OUT, "{step}", every_n_train_steps=1, save_top_k=-1)
at_end = ModelCheckpoint(OUT, "end-{step}", every_n_epochs=1, save_top_k=-1)
fit("whole", callbacks=[at_step, at_end])
for name in ("step=1", "step=2", "end-step=2", "step=3"):
    fit(name, resume=f"{OUT}/{name}.ckpt")
fit("other", Other, resume=f"{OUT}/step=1.ckpt")
fit("few", limit_train_batches=1.0, overfit_batches=1)
save(0)
"""


@needs("lightning")
def test_lightning_resumes_at_the_end_of_an_epoch_that_was_cut_short(numbered, tmp_path):
    [seen] = run_program(HEAD + LIGHTNING_LIMIT, numbered, tmp_path)

    def batches(what):
        return [rows for epoch in range(3) for name, rows in seen if name == f"{what} {epoch}"]

    whole = batches("whole")
    assert len(whole) == 6
    numbers = [number for rows in whole[:2] for number, _ in rows]
    assert len(set(numbers)) == 24 and numbers != [number for rows in whole[2:4] for number, _ in rows]
    for name, steps in (("step=1", 1), ("step=2", 2), ("end-step=2", 2), ("step=3", 3)):
        assert batches(name) == whole[steps:], name
    warned = {name: said for name, said in seen if name.endswith("warned")}
    assert warned["whole warned"] == warned["step=1 warned"] == []
    assert "no state of this DataModule" in warned["other warned"][0]
    assert "make train with shuffle=False" in warned["few warned"][0]


def fit(numbered, folder, devices, strategy="ddp", resume=None, rows=12, checkpoints=""):
    options = {"devices": devices, "strategy": strategy, "resume": resume, "rows": rows, "checkpoints": checkpoints}
    return run_program(HEAD + LIGHTNING, numbered, folder, options)


@needs("lightning")
@pytest.mark.parametrize("strategy", ["ddp", "ddp_spawn"])
def test_lightning_resumes_with_any_number_of_devices_and_validates_on_each_sample_once(numbered, tmp_path, strategy):
    checkpoints = tmp_path / "checkpoints"
    whole = fit(numbered, tmp_path / "whole", 2, strategy, checkpoints=str(checkpoints))
    assert len(whole) == 2
    epochs = [global_batches(whole, f"train {epoch}") for epoch in range(2)]
    assert_epochs(epochs)
    for epoch in range(2):
        assert sorted(numbers_of(global_batches(whole, f"val {epoch}"))) == list(range(SAMPLES))
    # In the middle of the first epoch, at its end, and in the middle of the second.
    for devices, step in zip(RANKS, (3, 5, 7)) if strategy == "ddp" else [(2, 3)]:
        resume = str(checkpoints / f"step={step}.ckpt")
        rest = fit(numbered, tmp_path / f"rest-{devices}", devices, strategy, resume=resume)
        batches = [batch for epoch in range(2) for batch in global_batches(rest, f"train {epoch}")]
        assert batches == [*epochs[0], *epochs[1]][step:], (devices, step)
        assert sorted(numbers_of(global_batches(rest, "val 1"))) == list(range(SAMPLES))
    if strategy == "ddp":
        [refused] = fit(numbered, tmp_path / "refused", 1, "auto", resume=resume, rows=24)
        assert "create the dataset with global_batch_size=12 instead of batch_size" in refused[0][1]


TIMM = """
import numpy
import shardtool.timm
from timm.data import FastCollateMixup

if __name__ == "__main__":
    common = {"input_size": (3, 8, 8), "batch_size": 10, "device": torch.device("cpu"), "num_workers": 1}
    plain = {**common, "mean": (0, 0, 0), "std": (1, 1, 1), "color_jitter": 0, "is_training": True}
    images_of = lambda values: (values * 255).round().to(torch.uint8)
    every = torch.ones(10, dtype=torch.bool)

    train = shardtool.timm.create_loader(PLACE, **plain)
    for epoch in range(2):
        # All batches of an epoch are kept until its end.
        for images, labels in list(train):
            see(f"train {epoch}", images_of(images), labels, every)
    train.set_epoch(1)
    rest = iter(train)
    next(rest), next(rest)
    state = train.state_dict()
    train.close()
    again = shardtool.timm.create_loader(PLACE, **plain)
    again.load_state_dict(state)
    for images, labels in again:
        see("resumed", images_of(images), labels, every)
    # Steps after the first ones run in Python.
    python = {**plain, "color_jitter": 0.4, "color_jitter_prob": 0.0, "gaussian_blur_prob": 0.01}
    for images, labels in shardtool.timm.create_loader(PLACE, **python):
        see("python", images_of(images), labels, every[: len(labels)])

    evaluate = {**common, "mean": (0, 0, 0), "std": (1, 1, 1)}
    for prefetcher in (True, False):
        for images, labels in shardtool.timm.create_loader(PLACE, use_prefetcher=prefetcher, **evaluate):
            see(f"evaluated {prefetcher}", images_of(images), labels, torch.ones(len(labels), dtype=torch.bool))

    mix = FastCollateMixup(mixup_alpha=1.0, num_classes=26, label_smoothing=0.0)
    for images, targets in shardtool.timm.create_loader(PLACE, collate_fn=mix, re_prob=0.5, **plain):
        assert targets.shape == (10, 26) and torch.allclose(targets.sum(1), torch.ones(10))
        SEEN.append(["mixed", sorted({len(row.nonzero()) for row in targets})])

    from timm.data import ImageDataset, create_loader
    shardtool.timm.install()
    dataset = ImageDataset(PLACE, reader="shards/", class_map={f"{n:02}": 25 - n for n in range(26)})
    assert len(dataset) == 51
    assert int(dataset.filename(3, basename=True)) == numpy.array(dataset[3][0])[0, 0, 0]
    loader = __import__("timm.data").data.create_loader(dataset, **evaluate)
    assert type(loader) is shardtool.timm.ShardPrefetchLoader
    for images, labels in loader:
        see("mapped", images_of(images), 25 - labels, torch.ones(len(labels), dtype=torch.bool))
    # timm's own loader, with the workers of its DataLoader, over single samples.
    for images, labels in create_loader(dataset, persistent_workers=False, **evaluate):
        see("single", images_of(images), 25 - labels, torch.ones(len(labels), dtype=torch.bool))
    def refused(place, **arguments):
        try:
            shardtool.timm.create_loader(place, **arguments, **evaluate)
        except shardtool.OptionError as error:
            SEEN.append(["refused", str(error)])

    for name, value in (
        ("num_aug_splits", 3), ("tf_preprocessing", True), ("input_size_choices", [8, 16]),
        ("train_crop_mode", "rkrc"), ("crop_border_pixels", 2),
    ):
        refused(PLACE, **{name: value})

    try:
        shardtool.timm.create_loader(PLACE, loader_options={"on_bad": "skip"}, **evaluate)
    except shardtool.OptionError as error:
        SEEN.append(["skip", str(error)])

    # Settings that only the samples of timm's dataset follow.
    dataset.target_transform = lambda target: target + 100
    refused(dataset)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        own = __import__("timm.data").data.create_loader(dataset, **{**evaluate, "num_workers": 0})
    assert type(own) is not shardtool.timm.ShardPrefetchLoader and "target_transform" in str(warned[0].message)
    assert next(iter(own))[1].min() >= 100
    # Without workers, as in a DataLoader, and with one channel.
    gray = {**evaluate, "input_size": (1, 8, 8), "mean": (0,), "std": (1,), "num_workers": 0}
    SEEN.append(["gray", list(next(iter(shardtool.timm.create_loader(PLACE, **gray)))[0].shape)])

    # With a class map, a sample without a class stays without one.
    place = os.path.join(OUT, "mixed")
    with shardtool.Writer(place, classes=["a", "b"]) as writer:
        for number, label in enumerate(["a", None, "b"]):
            writer.add(f"{number}", numpy.full((8, 8, 3), number, numpy.uint8), label=label)
    dataset = ImageDataset(place, reader="shards/", class_map={"a": 7, "b": 5})
    [(_, labels)] = shardtool.timm.create_loader(dataset, **evaluate)
    SEEN.append(["without a class", [labels.tolist(), [dataset[index][1] for index in range(3)]]])
    save(0)
"""


@needs("timm")
def test_the_loader_for_timm_trains_evaluates_mixes_and_resumes(numbered, tmp_path):
    [seen] = run_program(HEAD + TIMM, numbered, tmp_path)
    of = {}
    for what, rows in seen:
        of.setdefault(what, []).append(rows)
    # Training drops the one sample after the last whole batch.
    for name in ("train 0", "train 1", "python"):
        assert len(set(numbers_of(of[name]))) == 50
    assert of["train 0"] != of["train 1"] and of["resumed"] == of["train 1"][2:]
    for name in ("evaluated True", "evaluated False", "mapped", "single"):
        assert sorted(numbers_of(of[name])) == list(range(SAMPLES)), name
        assert numbers_of(of[name]) == numbers_of(of["single"]), name
    assert of["evaluated True"] == of["evaluated False"] == of["mapped"]
    assert len(of["mixed"]) == 5 and any(2 in counts for counts in of["mixed"])
    names = ("num_aug_splits", "tf_preprocessing", "input_size_choices", "train_crop_mode", "crop_border_pixels")
    assert [text.split(":")[0] for text in of["refused"]] == [
        f"shardtool.timm.create_loader does not support {name}" for name in (*names, "target_transform")
    ]
    assert 'use on_bad="replace"' in of["skip"][0]
    assert of["gray"] == [[10, 1, 8, 8]]
    assert of["without a class"] == [[[7, -1, 5], [7, -1, 5]]]


OPEN_CLIP = """
import argparse
import open_clip, shardtool.open_clip
from open_clip_train.data import get_data

def tokenizer(texts):
    return torch.tensor([[int(word) for word in text.split()] for text in texts])

preprocess = open_clip.image_transform(8, is_train=False, mean=(0, 0, 0), std=(1, 1, 1))

def made(is_train, rank=0, ranks=1):
    args = argparse.Namespace(
        train_data=PLACE, val_data=PLACE, batch_size=10 // ranks, seed=3, rank=rank, world_size=ranks, workers=1
    )
    return shardtool.open_clip.get_shard_dataset(args, preprocess, is_train, tokenizer=tokenizer)

def look(name, data, epochs):
    for epoch in epochs:
        data.set_epoch(epoch)
        # All batches of an epoch are kept until its end.
        for images, texts in list(data.dataloader):
            valid = torch.ones(len(images), dtype=torch.bool)
            see(f"{name} {epoch}", (images * 255).round().to(torch.uint8), texts[:, 0] // 2, valid)

train = made(True)
assert train.dataloader.num_batches == len(train.dataloader) == 5 and train.dataloader.num_samples == 51
look("train", train, range(2))
look("evaluated", made(False), range(1))
# open_clip resumes with the epoch after that of its checkpoint.
look("resumed", made(True), [1])
for rank in range(2):
    look(f"rank {rank}", made(True, rank, 2), range(2))
save(0)
"""


@needs("open_clip", "open_clip_train", "webdataset")
def test_open_clip_gets_each_image_with_its_caption(numbered, tmp_path):
    [seen] = run_program(HEAD + OPEN_CLIP, numbered, tmp_path)
    of = {}
    for what, rows in seen:
        of.setdefault(what, []).append(rows)
    assert sorted(numbers_of(of["evaluated 0"])) == list(range(SAMPLES))
    assert len(set(numbers_of(of["train 0"]))) == len(set(numbers_of(of["train 1"]))) == 50
    assert numbers_of(of["train 0"]) != numbers_of(of["train 1"])
    assert of["resumed 1"] == of["train 1"]
    for epoch in range(2):
        of_ranks = zip(of[f"rank 0 {epoch}"], of[f"rank 1 {epoch}"])
        assert [sorted(one + other) for one, other in of_ranks] == [sorted(rows) for rows in of[f"train {epoch}"]]


#: Uses the loader of the example as torchtitan's Trainer does.
TORCHTITAN = """
import itertools
sys.path.insert(0, OPTIONS["examples"])
from torchtitan_loader import ShardDataLoader

def made(batch_size=10, rank=0, ranks=1):
    return ShardDataLoader.Config(dataset_path=PLACE).build(
        dp_world_size=ranks, dp_rank=rank, tokenizer=None, seq_len=0, local_batch_size=batch_size,
        snapshot_every_n_steps=None,
    )

def look(what, loader, steps):
    # All batches are kept until the last one is received.
    for inputs, labels in list(itertools.islice(loader, steps)):
        see(what, inputs["image"], labels, torch.ones(len(labels), dtype=torch.bool))
        assert torch.equal(inputs["image"][:, 0, 0, 0].long(), OF_INDEX[inputs["index"]])

with shardtool.Dataset(PLACE, output="torch") as dataset:
    OF_INDEX = torch.tensor([int(dataset[index][0][0, 0, 0]) for index in range(len(dataset))])
whole = made()
look("whole", whole, 10)
whole.close()
first = made()
look("first", first, 7)
state = first.state_dict()
first.close()
for rank in range(2):
    rest = made(5, rank, 2)
    rest.load_state_dict(state)
    look(f"rank {rank}", rest, 3)
    rest.close()
save(0)
"""


@needs("torchtitan")
def test_torchtitan_gets_each_image_with_its_label_and_resumes_in_an_epoch_with_more_ranks(numbered, tmp_path):
    options = {"examples": str(CHECKOUT / "examples/frameworks")}
    [seen] = run_program(HEAD + TORCHTITAN, numbered, tmp_path, options)
    of = {}
    for what, rows in seen:
        of.setdefault(what, []).append(rows)
    # An epoch has five whole batches.
    epochs = [numbers_of(of["whole"][:5]), numbers_of(of["whole"][5:])]
    assert all(len(set(epoch)) == 50 for epoch in epochs) and epochs[0] != epochs[1]
    assert of["first"] == of["whole"][:7]
    of_ranks = zip(of["rank 0"], of["rank 1"])
    assert [sorted(one + other) for one, other in of_ranks] == [sorted(rows) for rows in of["whole"][7:]]


MMENGINE = """
import io, pickle
import numpy
from PIL import Image
import mmengine.fileio, shardtool.mmengine

args = {"backend": "shards", "location": PLACE, "prefix": "data/"}
backend = mmengine.fileio.get_file_backend("data/00/01.png", backend_args=args)
assert mmengine.fileio.get_text("data/00/01.txt", backend_args=args) == "1"
for one in (backend, pickle.loads(pickle.dumps(backend))):
    image = numpy.array(Image.open(io.BytesIO(one.get("data/00/01.png"))))
    assert (image[:, :, 0] == 1).all()
assert backend.exists("data/25/50.png") and not backend.exists("data/25/99.png")
try:
    backend.get("data/00/01.jpg")
except FileNotFoundError as error:
    SEEN.append(["missing", str(error)])
save(0)
"""


@needs("mmengine")
def test_mmengine_reads_the_files_of_shards_by_their_paths(numbered, tmp_path):
    [seen] = run_program(HEAD + MMENGINE, numbered, tmp_path)
    assert "Sample 00/01 has the fields" in seen[0][1]


DATALOADER = """
if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        for persistent in (False, True):
            dataset = shardtool.Dataset(PLACE, transform=RANDOM, output="torch", seed=3)
            loader = DataLoader(
                dataset, batch_size=6, shuffle=True, num_workers=2, persistent_workers=persistent, prefetch_factor=4,
                multiprocessing_context=method,
            )
            name = f"{method} {persistent}"
            for epoch in range(2):
                # All batches of an epoch are kept until its end.
                for images, labels in list(loader):
                    see(f"{name} {epoch}", images, labels, torch.ones(len(labels), dtype=torch.bool))
            dataset.close()
    save(0)
"""


# Only with torch 2: spawned processes import torch, which takes seconds.
@needs("torchdata")
def test_a_dataloader_with_workers_gets_each_sample_once_with_any_start_method(numbered, tmp_path):
    [seen] = run_program(HEAD + DATALOADER, numbered, tmp_path)
    names = [f"{method} {persistent}" for method in ("fork", "spawn", "forkserver") for persistent in (False, True)]
    for name in names:
        assert_epochs([[rows for what, rows in seen if what == f"{name} {epoch}"] for epoch in range(2)])


JAX = """
import jax

@jax.jit
def slow(images, labels):
    # Work that is still running when the next batches are requested.
    values = images.astype("float32").reshape(len(images), -1)
    for _ in range(20):
        values = values @ jax.numpy.eye(values.shape[1])
    return values[:, 0], values.reshape(images.shape)[..., 0].max((1, 2)), labels

with shardtool.Loader(PLACE, batch_size=4, transform=RANDOM, output="numpy", seed=3, epochs_per_loop=4) as loader:
    for how in (jax.device_put, jax.numpy.from_dlpack, jax.numpy.asarray):
        loader.set_epoch(0)
        results, valid = [], []
        for batch in loader:
            valid.append(batch.valid.tolist())
            results.append(slow(how(batch.images), jax.device_put(batch.labels)))
        SEEN.append([[[one.tolist() for one in result] for result in results], valid])
save(0)
"""


@needs("jax")
def test_jax_computes_on_the_bytes_of_its_batch_without_waiting_after_a_step(numbered, tmp_path):
    [seen] = run_program(HEAD + JAX, numbered, tmp_path, environment={"JAX_PLATFORMS": "cpu"})
    assert len(seen) == 3
    for results, _ in seen:
        numbers = [int(number) for first, _, _ in results for number in first]
        assert sorted(numbers) == sorted([*range(SAMPLES)] * 4)
        assert all(first == highest for first, highest, _ in results)
        assert [number // 2 for number in numbers] == [label for _, _, labels in results for label in labels]
