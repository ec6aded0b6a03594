"""Batches of every kind through Accelerate, Lightning and the Trainer: `npm run test:long torch2` has the frameworks.

Several images per sample, mixes one after another, samples without images, functions in Python, several labels. A run
on two processes stops in an epoch, and one, two and three processes take it up.
"""

import numpy as np
import pytest
from frameworks import global_batches, needs, numbers_of, run_program

import shardtool

SAMPLES = 51
#: Number of batches of an epoch, of 12 rows over all processes, and where runs stop in the first one.
BATCHES, STOP = 5, 2
KINDS = ["several", "sequence", "arrays", "python", "labels"]

pytestmark = pytest.mark.time_limit(1200)


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Two datasets of 51 samples: of one image each, and of 0 to 2 images each. The red of an image is its sample."""
    folder = tmp_path_factory.mktemp("places")
    ramp = np.arange(16, dtype=np.uint8) * 15

    def image(number, blue):
        return np.stack(np.broadcast_arrays(np.uint8(number), ramp[:, None], np.uint8(blue)), axis=-1)

    one, several = folder / "one", folder / "several"
    classes = [f"{label:02}" for label in range(26)]
    with shardtool.Writer(one, classes=classes, max_shard_samples=20) as writer:
        for number in range(SAMPLES):
            more = {"n.npy": np.full(3, number, np.float32), "tags.json": [number // 2, number % 26]}
            writer.add(f"{number:02}", image(number, 0), label=number // 2, **more)
    with shardtool.Writer(several, primary="n.npy", max_shard_samples=20) as writer:
        for number in range(SAMPLES):
            images = {f"img.{place}.npy": image(number, place) for place in range(number % 3)}
            writer.add(f"{number:02}", **{"n.npy": np.full(3, number, np.float32)}, **images)
    return folder


#: `rows_of` checks a batch and returns a line for each valid row: its number, and a checksum of its content.
HEAD = """
import glob, json, os, signal, sys, zlib
import shardtool, torch

PLACES, OUT = sys.argv[1:3]
OPTIONS = json.loads(sys.argv[3])
RANDOM = [{"name": "random_resized_crop", "size": 8}, {"name": "random_horizontal_flip"}]
SEEN, KEPT = [], []

def marked(image, label, seed):
    # The function receives the row that it states: the class is half of the number.
    number = int(image[0, 0, 0])
    assert label == number // 2
    return {"image": 255 - image, "label": label, "number": torch.tensor([number, seed % 1000003]).numpy()}

MIXES = [{"name": "mosaic", "p": 0.8}, {"name": "timm_mixup", "mixup_alpha": 32, "prob": 0.5, "mode": "elem"}]
RESIZE = [{"name": "resize", "size": [16, 16]}]
LABELS = {"field": "tags.json", "classes": 26}
HOW = {
    "several": ("several", {"images": ["img.*"], "fields": ["n.npy"], "transform": RANDOM}),
    "sequence": ("one", {"fields": ["n.npy"], "transform": RESIZE, "mix": {"name": "sequence", "mixes": MIXES}}),
    "arrays": ("several", {"fields": ["n.npy"], "image": False}),
    "python": ("one", {"transform": RANDOM, "python_transform": marked, "python_workers": 1}),
    "labels": ("one", {"transform": RANDOM, "labels": LABELS}),
}
COMMON = {"global_batch_size": 12, "workers": 1}

def made(kind, **options):
    place, of_kind = HOW[kind]
    return os.path.join(PLACES, place), {**of_kind, **COMMON, "seed": 3, **options}

def crc(value):
    return zlib.crc32(value.contiguous().numpy())

def rows_of(kind, batch):
    valid = batch.valid.tolist()
    if kind == "arrays":
        assert batch.images is None and list(batch.fields) == ["n.npy"]
        arrays = batch.fields["n.npy"]
        assert arrays.shape[1:] == (3,) and bool((arrays == arrays[:, :1]).all())
        rows = [[int(row[0]), crc(row)] for row in arrays]
    elif kind == "several":
        rows = []
        for array, images in zip(batch.fields["n.npy"], batch.image_lists()):
            number = int(array[0])
            assert len(images) == number % 3
            for place, image in enumerate(images):
                assert bool((image[0] == number).all()) and bool((image[2] == place).all())
            rows.append([number, crc(images)])
    elif kind == "sequence":
        numbers = batch.fields["n.npy"][:, 0].long()
        assert torch.equal(numbers[batch.valid] // 2, batch.labels[batch.valid])
        rows = [[int(n), [crc(i), float(w)]] for n, i, w in zip(numbers, batch.images, batch.mix.weights)]
    elif kind == "python":
        numbers = 255 - batch.images[:, 0, 0, 0].long()
        assert bool((batch.images[:, 0] == batch.images[:, 0, :1, :1]).all())
        assert torch.equal(numbers // 2, batch.labels) and torch.equal(batch.fields["number"][:, 0], numbers)
        rows = [[int(n), [crc(i), int(s)]] for n, i, s in zip(numbers, batch.images, batch.fields["number"][:, 1])]
    else:
        numbers = batch.images[:, 0, 0, 0].long()
        wanted = torch.zeros(len(numbers), 26)
        for row, number in enumerate(numbers.tolist()):
            wanted[row, [number // 2, number % 26]] = 1
        assert torch.equal(batch.labels, wanted)
        rows = [[int(number), crc(image)] for number, image in zip(numbers, batch.images)]
    return [row for row, counts in zip(rows, valid) if counts]

def kill_reader():
    # The reader is the Node process that this one has started.
    for stat in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(stat) as file:
                parent = int(file.read().rsplit(")", 1)[1].split()[1])
            with open(stat.replace("/stat", "/cmdline")) as file:
                is_reader = "node" in file.read().split("\\0")[0]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent == os.getpid() and is_reader:
            os.kill(int(stat.split("/")[2]), signal.SIGKILL)
            SEEN.append(["killed", []])
    assert SEEN[-1][0] == "killed"

def see(what, kind, batch):
    if OPTIONS.get("kill") and os.environ["RANK"] == "1" and len(SEEN) == 3:
        kill_reader()
    SEEN.append([what, rows_of(kind, batch)])
    if len(SEEN) % 2:
        KEPT.append([kind, batch, SEEN[-1][1]])

def save(rank):
    for kind, batch, before in KEPT:
        assert rows_of(kind, batch) == before, "a kept batch has changed"
    with open(os.path.join(OUT, f"seen-{rank}.json"), "w") as file:
        json.dump(SEEN, file)
"""

#: The batches of two epochs that one process reads without a framework.
PLAIN = """
if __name__ == "__main__":
    for kind in HOW:
        place, options = made(kind)
        with shardtool.Loader(place, epochs_per_loop=2, **options) as loader:
            for batch in loader:
                see(kind, kind, batch)
    save(0)
"""


@pytest.fixture(scope="module")
def plain(places, tmp_path_factory):
    [seen] = run_program(HEAD + PLAIN, places, tmp_path_factory.mktemp("plain") / "out")
    batches = {kind: [sorted(rows) for what, rows in seen if what == kind] for kind in KINDS}
    for kind in KINDS:
        epochs = [numbers_of(batches[kind][:BATCHES]), numbers_of(batches[kind][BATCHES:])]
        assert [sorted(epoch) for epoch in epochs] == [list(range(SAMPLES))] * 2 and epochs[0] != epochs[1], kind
    return batches


def assert_taken_up(program, places, folder, plain, suffixes=("",)):
    """Two processes run two epochs and save in the first one. One, two and three processes resume from that."""
    options = {"checkpoints": str(folder / "checkpoints"), "resume": False, "stop": STOP}
    whole = run_program(HEAD + program, places, folder / "whole", options, 2)
    for ranks in (1, 2, 3):
        rest = run_program(HEAD + program, places, folder / f"rest-{ranks}", {**options, "resume": True}, ranks)
        for kind in KINDS:
            for suffix in suffixes:
                batches = [global_batches(seen, kind + suffix) for seen in (whole, rest)]
                if kind == "sequence" and ranks == 2:
                    assert batches[1] == batches[0][STOP:], kind + suffix
                # Images are mixed with others of the same process.
                of = of_numbers if kind == "sequence" else list
                wanted = of(plain[kind])
                assert [of(part) for part in batches] == [wanted, wanted[STOP:]], (kind + suffix, ranks)


def of_numbers(batches):
    return [[number for number, _ in rows] for rows in batches]


ACCELERATE = """
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
import shardtool.accelerate

if __name__ == "__main__":
    for name, dispatch in (("unset", None), ("sent", True), ("own", False)):
        for kind in HOW:
            what = f"{kind} {name}"
            config = DataLoaderConfiguration(dispatch_batches=dispatch)
            accelerator = Accelerator(cpu=True, dataloader_config=config)
            place, options = made(kind)
            loader = accelerator.prepare(shardtool.accelerate.prepare(accelerator, place, **options))
            folder = os.path.join(OPTIONS["checkpoints"], what)
            if OPTIONS["resume"]:
                accelerator.load_state(folder)
            for epoch in range(loader.state_dict()["epoch"], 2):
                for number, batch in enumerate(loader):
                    see(what, kind, batch)
                    if not OPTIONS["resume"] and epoch == 0 and number + 1 == OPTIONS["stop"]:
                        accelerator.save_state(folder)
            loader.close()
            accelerator.free_memory()
    save(accelerator.process_index)
    accelerator.end_training()
"""


@needs("accelerate")
def test_accelerate_gets_batches_of_every_kind_and_takes_them_up(places, tmp_path, plain):
    assert_taken_up(ACCELERATE, places, tmp_path, plain, (" unset", " sent", " own"))


#: A DataLoader that Accelerate wraps itself. Batches that it cannot send to the other processes are rejected by name.
WRAPPED = """
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
from torch.utils.data import DataLoader

if __name__ == "__main__":
    for name, dispatch in (("unset", None), ("sent", True), ("own", False)):
        for kind in HOW:
            what = f"{kind} {name}"
            accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(dispatch_batches=dispatch))
            place, options = made(kind)
            dataset = shardtool.iterable_dataset(place, **options)
            try:
                for epoch, batch in enumerate(accelerator.prepare(DataLoader(dataset, batch_size=None))):
                    if hasattr(batch, "valid"):
                        see(what, kind, batch)
                    else:
                        images, labels = batch
                        numbers = images[:, 0, 0, 0].long()
                        numbers = 255 - numbers if kind == "python" else numbers
                        if kind == "labels":
                            assert bool((labels[range(len(numbers)), numbers // 2] == 1).all())
                        else:
                            assert torch.equal(numbers // 2, labels)
                        SEEN.append([what, numbers.tolist()])
            except shardtool.OptionError as error:
                SEEN.append([f"{what} refused", str(error)])
            dataset.close()
            accelerator.free_memory()
    save(accelerator.process_index)
    accelerator.end_training()
"""


@needs("accelerate")
def test_accelerate_s_own_loader_of_every_kind_has_each_sample_once_or_is_rejected(places, tmp_path, plain):
    ranks = run_program(HEAD + WRAPPED, places, tmp_path / "out", {}, 2)
    for kind in KINDS:
        of = of_numbers if kind == "sequence" else list
        assert of(global_batches(ranks, f"{kind} own")) == of(plain[kind][:BATCHES]), kind
        for name in ("unset", "sent"):
            refusals = [text for seen in ranks for what, text in seen if what == f"{kind} {name} refused"]
            if kind in ("several", "sequence", "arrays"):
                assert refusals and "use dispatch_batches=False" in refusals[0], (kind, name)
                continue
            assert refusals == [], refusals
            numbers = [number for seen in ranks for what, rows in seen if what == f"{kind} {name}" for number in rows]
            # Accelerate repeats the first rows to make all batches even.
            assert set(numbers) == set(range(SAMPLES)) and len(numbers) <= SAMPLES + 12, (kind, name)


LIGHTNING = """
import lightning
from lightning.pytorch.callbacks import ModelCheckpoint
from shardtool.lightning import DataModule

class Module(lightning.LightningModule):
    def __init__(self, kind):
        super().__init__()
        self.kind, self.scale = kind, torch.nn.Parameter(torch.zeros(()))

    def training_step(self, batch, number):
        see(self.kind, self.kind, batch)
        return self.scale * 0

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

if __name__ == "__main__":
    for kind in OPTIONS.get("kinds", HOW):
        place, options = made(kind)
        folder = os.path.join(OPTIONS["checkpoints"], kind)
        checkpoint = ModelCheckpoint(folder, "{step}", every_n_train_steps=1, save_top_k=-1)
        trainer = lightning.Trainer(
            accelerator="cpu", devices=int(os.environ["WORLD_SIZE"]), strategy="ddp", max_epochs=2, logger=False,
            callbacks=[] if OPTIONS["resume"] else [checkpoint], enable_checkpointing=not OPTIONS["resume"],
            enable_progress_bar=False, enable_model_summary=False, default_root_dir=OUT,
        )
        path = os.path.join(folder, f"step={OPTIONS['stop']}.ckpt") if OPTIONS["resume"] else None
        data = DataModule(shardtool.iterable_dataset(place, **options))
        trainer.fit(Module(kind), data, ckpt_path=path, weights_only=False)
    save(trainer.global_rank)
    torch.distributed.destroy_process_group()
"""


@needs("lightning")
def test_lightning_gets_batches_of_every_kind_and_takes_them_up(places, tmp_path, plain):
    assert_taken_up(LIGHTNING, places, tmp_path, plain)


TRAINER = """
from transformers import TrainingArguments
from shardtool.transformers import ShardTrainer

class Model(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind, self.scale = kind, torch.nn.Parameter(torch.zeros(()))

    def forward(self, batch):
        see(self.kind, self.kind, batch)
        return {"loss": self.scale * 0}

def whole(batch):
    return {"batch": batch}

if __name__ == "__main__":
    rows = 12 // int(os.environ["WORLD_SIZE"])
    for kind in OPTIONS.get("kinds", HOW):
        place, options = made(kind)
        folder = os.path.join(OPTIONS["checkpoints"], kind)
        settings = TrainingArguments(
            folder if not OPTIONS["resume"] else os.path.join(OUT, kind), num_train_epochs=2,
            per_device_train_batch_size=rows, save_strategy="steps", save_steps=1, logging_strategy="no",
            report_to=[], use_cpu=True, disable_tqdm=True, remove_unused_columns=False, seed=7,
        )
        train = shardtool.iterable_dataset(place, **options)
        trainer = ShardTrainer(Model(kind), settings, train_dataset=train, data_collator=whole)
        trainer.train(resume_from_checkpoint=f"{folder}/checkpoint-{OPTIONS['stop']}" if OPTIONS["resume"] else None)
    save(settings.process_index)
"""


@needs("transformers", "accelerate")
def test_the_trainer_gets_batches_of_every_kind_and_takes_them_up(places, tmp_path, plain):
    assert_taken_up(TRAINER, places, tmp_path, plain)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=needs(name, "accelerate")) for name in ("lightning", "transformers")]
)
def test_if_a_reader_is_killed_the_run_ends_and_another_run_resumes_from_its_checkpoint(places, tmp_path, plain, name):
    program = HEAD + {"lightning": LIGHTNING, "transformers": TRAINER}[name]
    options = {"checkpoints": str(tmp_path / "checkpoints"), "resume": False, "stop": STOP, "kinds": ["labels"]}
    assert run_program(program, places, tmp_path / "killed", {**options, "kill": True}, 2, code=1) == []
    rest = run_program(program, places, tmp_path / "rest", {**options, "resume": True}, 3)
    assert global_batches(rest, "labels") == plain["labels"][STOP:]
