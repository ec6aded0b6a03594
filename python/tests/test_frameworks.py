"""Each sample is used exactly once over two ranks, in common training frameworks.

Each image has the number of its sample in its pixels, encoded differently in each channel, to check the batches. The
frameworks need torch 2: `npm run test:long torch2` has them.
"""

import pytest
from frameworks import needs, run_program
from PIL import Image

from datasets import pack

SAMPLES = 50


@pytest.fixture(scope="module")
def numbered(tmp_path_factory):
    """50 images of one colour, whose red value is the number of the sample, and whose class is half of it."""
    folder = tmp_path_factory.mktemp("numbered")
    for number in range(SAMPLES):
        file = folder / "images" / f"{number // 2:02}" / f"{number:02}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (number, number + 60, number + 120)).save(file)
    return pack(folder / "images", folder / "shards", "--max-shard-samples", "20")


#: The beginning of each program of these tests.
HEAD = """
import json, os, sys, warnings
import shardtool, torch
from torch.utils.data import DataLoader

PLACE, OUT = sys.argv[1:3]
OPTIONS = json.loads(sys.argv[3])
SEEN = []

def see(epoch, images, labels, valid=None):
    valid = torch.ones(len(labels), dtype=torch.bool) if valid is None else valid
    numbers = images[:, 0, 0, 0].long()
    assert torch.equal(numbers // 2, labels), (numbers, labels)
    colours = numbers[:, None] + torch.tensor([0, 60, 120])
    assert torch.equal(images.long(), colours[:, :, None, None].expand_as(images)), (colours, images)
    SEEN.append([epoch, numbers[valid].tolist()])

def save(rank):
    with open(os.path.join(OUT, f"seen-{rank}.json"), "w") as file:
        json.dump(SEEN, file)
"""


def run(program, place, folder, options=(), ranks=None, environment=()):
    """The batches of each rank: lists of epoch and sample numbers. `ranks` are started by torchrun."""
    return run_program(HEAD + program, place, folder, options, ranks, environment)


def assert_each_comes_once(ranks, epochs=2, samples=SAMPLES):
    orders = []
    for epoch in range(epochs):
        orders.append([number for seen in ranks for of, numbers in seen if of == epoch for number in numbers])
        assert sorted(orders[-1]) == list(range(samples)), (epoch, len(orders[-1]))
    assert len(set(map(tuple, orders))) == epochs


ACCELERATE = """
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration

def of_one(batches):
    return batches[0].images, batches[0].labels

for name, (config, around, given) in OPTIONS.items():
    accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(**config))
    dataset = shardtool.iterable_dataset(PLACE, seed=3, **given)
    around = {"batch_size": None} if around is None else {"batch_size": around, "collate_fn": of_one}
    loader = accelerator.prepare(DataLoader(dataset, **around))
    length = len(loader)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for epoch in range(2):
            batches = 0
            for batch in loader:
                images, labels = batch
                see([name, epoch], images, labels, getattr(batch, "valid", None))
                batches += 1
            assert batches == length, (name, batches, length)
    said = [str(one.message) for one in warned if "Accelerate reads" in str(one.message)]
    SEEN.append([[f"{name} warned", None], said])
    dataset.close()
save(accelerator.process_index)
"""

#: Settings of Accelerate, batch_size of the DataLoader (None: without a collate_fn), options of the dataset. 50 samples
#: are 2 x 5 batches of 5, so that Accelerate has no reason to repeat one.
ACCELERATE_CASES = {
    "usual": ({}, None, {"batch_size": 5}),
    "sent": ({"dispatch_batches": True}, None, {"batch_size": 5}),
    "sent, of all ranks": ({"dispatch_batches": True}, None, {"global_batch_size": 10}),
    "sent, collated": ({"dispatch_batches": True}, 1, {"batch_size": 5, "fields": ["cls"]}),
    "sent, split": ({"dispatch_batches": True, "split_batches": True}, 1, {"batch_size": 10}),
    "own": ({"dispatch_batches": False}, None, {"batch_size": 5, "with_keys": False}),
    "own, collated": ({"dispatch_batches": False}, 1, {"batch_size": 5}),
    "own, uneven": ({"dispatch_batches": False}, None, {"batch_size": 8}),
    "own, no even batches": ({"dispatch_batches": False, "even_batches": False}, None, {"batch_size": 5}),
    "own, split": ({"dispatch_batches": False, "split_batches": True}, 2, {"batch_size": 5}),
}


@needs("accelerate")
@pytest.mark.parametrize("ranks", [1, 2])
def test_accelerate_gets_each_sample_once_with_every_setting(numbered, tmp_path, ranks):
    cases = {name: case for name, case in ACCELERATE_CASES.items() if ranks == 2 or "split" not in name}
    seen = run(ACCELERATE, numbered, tmp_path, cases, ranks)
    assert len(seen) == ranks
    for name in cases:
        of_case = [[[epoch, numbers] for (case, epoch), numbers in rank if case == name] for rank in seen]
        assert_each_comes_once(of_case)
        assert all(len(numbers) > 0 for _, numbers in of_case[0])
        # Process 0 receives a message if it reads for all.
        said = [texts for rank in seen for (case, _), texts in rank if case == f"{name} warned"]
        is_sent = ranks == 2 and not name.startswith("own")
        assert [len(texts) > 0 for texts in said] == [is_sent, *[False] * (ranks - 1)], (name, said)
        if is_sent:
            assert "in one process for all 2" in said[0][0] and "use dispatch_batches=False" in said[0][0]


REFUSED = """
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration

def first(config, around, **given):
    accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(**config))
    loader = accelerator.prepare(DataLoader(shardtool.iterable_dataset(PLACE, **given), **around))
    try:
        next(iter(loader))
    except shardtool.OptionError as error:
        SEEN.append(str(error))
    else:
        SEEN.append("not refused")

whole = {"batch_size": None}
first({"dispatch_batches": True}, whole, fields=["cls"])
first({"dispatch_batches": True}, whole, on_bad="skip")
first({"dispatch_batches": True}, whole, rank=1, world_size=2)
save(0)
"""


@needs("accelerate")
def test_batches_that_accelerate_would_split_wrongly_are_rejected(numbered, tmp_path):
    [said] = run(REFUSED, numbered, tmp_path)
    assert "remove fields, use dispatch_batches=False" in said[0]
    assert "remove on_bad='skip'" in said[1]
    assert "rank=1 and world_size=2, but Accelerate reads it as rank 0 of 1" in said[2]


TRAINER = """
import tempfile
from transformers import Trainer, TrainingArguments

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.zeros(()))

    def forward(self, images, labels, valid):
        see([NAME, "train" if self.training else "evaluate"], images, labels, valid)
        return {"loss": self.scale * 0, "logits": labels.float()}

def of_one(batches):
    [batch] = batches
    return {"images": batch.images, "labels": batch.labels, "valid": batch.valid}

for NAME, config in OPTIONS.items():
    train = shardtool.iterable_dataset(PLACE, seed=3, batch_size=5)
    evaluate = shardtool.iterable_dataset(PLACE, shuffle=False, batch_size=5)
    settings = TrainingArguments(
        output_dir=tempfile.mkdtemp(), num_train_epochs=2, per_device_train_batch_size=1, per_device_eval_batch_size=1,
        eval_strategy="epoch", save_strategy="no", report_to=[], use_cpu=True, remove_unused_columns=False,
        accelerator_config=config, disable_tqdm=True, label_names=["labels"],
    )
    trainer = Trainer(
        Model(), settings, data_collator=of_one, train_dataset=train, eval_dataset=evaluate,
        compute_metrics=lambda found: {"rows": len(found.label_ids)},
    )
    assert len(trainer.get_train_dataloader()) == 10 // settings.world_size
    trainer.train()
    rows = [log["eval_rows"] for log in trainer.state.log_history if "eval_rows" in log]
    assert rows == [50, 50], rows
save(settings.process_index)
"""

TRAINER_CASES = {"usual": {}, "own": {"dispatch_batches": False}, "sent": {"dispatch_batches": True}}


@needs("transformers", "accelerate")
@pytest.mark.parametrize("ranks", [1, 2])
def test_the_trainer_of_transformers_trains_and_evaluates_on_each_sample_once(numbered, tmp_path, ranks):
    seen = run(TRAINER, numbered, tmp_path, TRAINER_CASES, ranks)
    assert len(seen) == ranks
    for name in TRAINER_CASES:
        for phase in ("train", "evaluate"):
            numbers = [[batch for (of, what), batch in rank if (of, what) == (name, phase)] for rank in seen]
            epochs = [
                [[e, batch] for e in range(2) for batch in one[e * len(one) // 2 : (e + 1) * len(one) // 2]]
                for one in numbers
            ]
            if phase == "train":
                assert_each_comes_once(epochs)
            else:
                assert sorted(n for one in numbers for batch in one for n in batch) == sorted([*range(SAMPLES)] * 2)


SPAWNED = """
def rank_of_two(rank, place, dataset):
    torch.distributed.init_process_group("gloo", init_method=f"file://{OUT}/meeting", rank=rank, world_size=2)
    with shardtool.Loader(place, seed=3, batch_size=5) as loader:
        for epoch in range(2):
            loader.set_epoch(epoch)
            for batch in loader:
                see(["loader", epoch], *batch, batch.valid)
    for batch in DataLoader(dataset, batch_size=None):
        see(["dataset", 0], *batch, batch.valid)
    for batch in DataLoader(dataset, batch_size=None):
        see(["dataset", 1], *batch, batch.valid)
    save(rank)
    torch.distributed.destroy_process_group()

if __name__ == "__main__":
    # Alone, it has all batches, so the loader is used before there are ranks.
    dataset = shardtool.iterable_dataset(PLACE, seed=3, batch_size=5)
    assert len(dataset) == 10
    method = OPTIONS["method"]
    torch.multiprocessing.start_processes(rank_of_two, (PLACE, dataset), nprocs=2, start_method=method)
"""


@needs("accelerate")
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_processes_that_torch_starts_have_the_rank_of_their_process_group(numbered, tmp_path, method):
    seen = run(SPAWNED, numbered, tmp_path, {"method": method})
    assert len(seen) == 2
    for name in ("loader", "dataset"):
        assert_each_comes_once([[[epoch, numbers] for (of, epoch), numbers in rank if of == name] for rank in seen])


LIGHTNING = """
import lightning

class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.zeros(()))

    def training_step(self, batch, number):
        see([NAME, self.current_epoch], *batch, batch.valid)
        return self.scale * 0

    def on_train_end(self):
        save(f"{NAME}-{self.global_rank}")

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

if __name__ == "__main__":
    NAME = OPTIONS["strategy"]
    dataset = shardtool.iterable_dataset(PLACE, seed=3, batch_size=5)
    trainer = lightning.Trainer(
        accelerator="cpu", devices=2, strategy=NAME, max_epochs=2, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, default_root_dir=OUT,
    )
    assert len(dataset) in (5, 10)
    trainer.fit(Module(), DataLoader(dataset, batch_size=None) if OPTIONS["wrapped"] else dataset)
NAME = OPTIONS["strategy"]
"""


@needs("lightning")
@pytest.mark.parametrize(
    ("strategy", "wrapped"), [("ddp", True), ("ddp", False), ("ddp_spawn", True), ("ddp_fork", False)]
)
def test_lightning_with_two_devices_started_by_plain_python(numbered, tmp_path, strategy, wrapped):
    seen = run(LIGHTNING, numbered, tmp_path, {"strategy": strategy, "wrapped": wrapped})
    assert len(seen) == 2
    assert_each_comes_once([[[epoch, numbers] for (_, epoch), numbers in rank] for rank in seen])


TIMM = """
from timm.data import create_loader

if __name__ == "__main__":
    dataset = shardtool.Dataset(PLACE, output="pil", target_transform=lambda label: label + 100)
    loader = create_loader(
        dataset, input_size=(3, 16, 16), batch_size=10, is_training=True, use_prefetcher=False, num_workers=1,
        color_jitter=0, hflip=0, mean=(0, 0, 0), std=(1, 1, 1), persistent_workers=False,
    )
    for epoch in range(2):
        for images, labels in loader:
            assert images.shape[1:] == (3, 16, 16)
            see(epoch, (images * 255).round(), labels - 100)
    save(0)
"""


@needs("timm")
def test_the_transform_that_timm_sets_is_the_one_that_samples_get(numbered, tmp_path):
    assert_each_comes_once(run(TIMM, numbered, tmp_path))
