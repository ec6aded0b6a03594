"""Batches that frameworks copy to a GPU during the loop: each image belongs to its label. Skipped without a GPU.

Each image has the number of its sample in all its pixels, and a different class. The comparisons run on the GPU, after
work that keeps it busy. So they see a copy that was made too late, from memory that was filled again.
"""

import os

import numpy as np
import pytest
import torch
from PIL import Image

import shardtool
from datasets import pack

#: The device to test; `cpu` tests the tests themselves if there is no GPU.
DEVICE = os.environ.get("SHARDTOOL_GPU_TESTS_ON", "cuda")
pytestmark = pytest.mark.skipif(DEVICE == "cuda" and not torch.cuda.is_available(), reason="torch has no GPU here")

SAMPLES, SIZE, BATCH = 700, 96, 32
OPTIONS = {"batch_size": BATCH, "workers": 2, "seed": 7}
ENLARGE = [{"name": "resize", "size": SIZE}]


@pytest.fixture(scope="module")
def numbered(tmp_path_factory):
    folder = tmp_path_factory.mktemp("numbered")
    for number in range(SAMPLES):
        file = folder / "images" / f"{number:04}" / "only.png"
        file.parent.mkdir(parents=True)
        Image.new("RGB", (SIZE, SIZE), colour(number)).save(file)
    return pack(folder / "images", folder / "shards", "--max-shard-samples", "150")


def colour(number):
    return number % 256, number // 256 + 10, number * 7 % 256


def busy(milliseconds=15):
    if DEVICE == "cuda":
        torch.cuda._sleep(int(milliseconds * 1.5e6))


class Seen:
    """The received batches, compared on the device and read only at the end."""

    def __init__(self):
        self.wrong = torch.zeros((), dtype=torch.long, device=DEVICE)
        self.labels = []

    def see(self, images, labels, valid=None):
        """`images` uint8 or float of the same values [n, 3, h, w], and `labels` [n], on the device."""
        assert images.device.type == labels.device.type == DEVICE
        expected = torch.stack([labels % 256, labels // 256 + 10, labels * 7 % 256], 1)[:, :, None, None]
        self.wrong += (images.to(torch.long) != expected).sum()
        self.labels.append(labels.clone() if valid is None else labels[valid.to(labels.device)])

    def check(self, epochs, samples=SAMPLES):
        assert self.wrong.item() == 0
        labels = torch.cat(self.labels).tolist()
        assert len(labels) == epochs * samples
        for epoch in range(epochs):
            assert len(set(labels[epoch * samples : (epoch + 1) * samples])) == samples, epoch
        assert labels[:samples] != labels[samples : 2 * samples]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"pin_memory": True},
        {"device": "cuda"},
        {"prefetch_batches": 1},
        {"pin_memory": True, "prefetch_batches": 1},
    ],
    ids=str,
)
def test_a_loop_that_copies_without_waiting_trains_on_the_right_images(numbered, options):
    if DEVICE != "cuda" and options.keys() & {"pin_memory", "device"}:
        pytest.skip("needs a GPU")
    seen = Seen()
    with shardtool.Loader(numbered, transform=ENLARGE, **OPTIONS, **options) as loader:
        for _ in range(3):
            for batch in loader:
                images, labels = (value.to(DEVICE, non_blocking=True) for value in (batch.images, batch.labels))
                valid = batch.valid
                busy()
                seen.see(images, labels, valid)
    seen.check(3)


def test_a_dataloader_that_pins_memory_around_a_loader_gets_the_right_images(numbered):
    seen = Seen()
    dataset = shardtool.iterable_dataset(numbered, transform=ENLARGE, **OPTIONS)
    loader = torch.utils.data.DataLoader(dataset, batch_size=None, pin_memory=DEVICE == "cuda")
    for _ in range(2):
        for batch in loader:
            images, labels, valid = batch.images, batch.labels, batch.valid
            images, labels = images.to(DEVICE, non_blocking=True), labels.to(DEVICE, non_blocking=True)
            busy()
            seen.see(images, labels, valid)
    seen.check(2)


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_a_dataloader_of_samples_with_workers_gets_the_right_images(numbered, context):
    seen = Seen()
    dataset = shardtool.Dataset(numbered, transform=ENLARGE, output="torch")
    loader = torch.utils.data.DataLoader(
        dataset,
        batch_size=BATCH,
        shuffle=True,
        num_workers=2,
        pin_memory=DEVICE == "cuda",
        persistent_workers=True,
        multiprocessing_context=context,
    )
    for _ in range(2):
        for images, labels in loader:
            images, labels = images.to(DEVICE, non_blocking=True), labels.to(DEVICE, non_blocking=True)
            busy(5)
            seen.see(images, labels)
    seen.check(2)


@pytest.mark.parametrize("dispatch_batches", [None, True, False])
def test_accelerate_moves_the_right_images(numbered, dispatch_batches):
    accelerate = pytest.importorskip("accelerate")
    import shardtool.accelerate

    accelerate.state.AcceleratorState._reset_state(True)
    configuration = accelerate.utils.DataLoaderConfiguration(dispatch_batches=dispatch_batches, non_blocking=True)
    accelerator = accelerate.Accelerator(cpu=DEVICE == "cpu", dataloader_config=configuration)
    loader = shardtool.accelerate.prepare(accelerator, numbered, transform=ENLARGE, **OPTIONS)
    seen = Seen()
    for _ in range(2):
        for batch in loader:
            busy()
            seen.see(batch.images, batch.labels, batch.valid)
    seen.check(2)


@pytest.mark.parametrize("pinned", [False, True])
def test_lightning_moves_the_right_images(numbered, pinned, tmp_path):
    lightning = pytest.importorskip("lightning")
    import shardtool.lightning

    seen = Seen()

    class Looks(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(1))

        def training_step(self, batch, number):
            busy()
            seen.see(batch.images, batch.labels, batch.valid)
            return self.weight.sum()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    options = {"pin_memory": True} if pinned and DEVICE == "cuda" else {}
    train = shardtool.iterable_dataset(numbered, transform=ENLARGE, **OPTIONS, **options)
    trainer = lightning.Trainer(
        max_epochs=2,
        accelerator="gpu" if DEVICE == "cuda" else "cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
    )
    trainer.fit(Looks(), shardtool.lightning.DataModule(train=train))
    seen.check(2)


def test_the_trainer_of_transformers_moves_the_right_images(numbered, tmp_path):
    transformers = pytest.importorskip("transformers")
    from shardtool.transformers import ShardTrainer

    seen = Seen()

    class Looks(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(1))

        def forward(self, pixel_values, labels):
            busy()
            real = labels >= 0
            seen.see(pixel_values[real], labels[real])
            return {"loss": self.weight.sum()}

    settings = transformers.TrainingArguments(
        str(tmp_path),
        per_device_train_batch_size=BATCH,
        num_train_epochs=2,
        report_to=[],
        save_strategy="no",
        use_cpu=DEVICE == "cpu",
        disable_tqdm=True,
    )
    train = shardtool.iterable_dataset(numbered, transform=ENLARGE, workers=2, seed=7)
    ShardTrainer(Looks(), settings, train_dataset=train).train()
    seen.check(2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_the_loader_for_timm_normalizes_the_right_images_on_the_device(numbered, dtype):
    pytest.importorskip("timm")
    import shardtool.timm

    seen = Seen()
    mean, std = (0.4, 0.5, 0.3), (0.2, 0.25, 0.3)
    options = {"mean": mean, "std": std, "crop_pct": 1.0, "device": torch.device(DEVICE), "img_dtype": dtype}
    loader = shardtool.timm.create_loader(numbered, (3, SIZE, SIZE), BATCH, num_workers=2, **options)
    scale, bias = (torch.tensor(v, device=DEVICE).view(1, 3, 1, 1) for v in (std, mean))
    for images, targets in loader:
        assert images.dtype == dtype
        busy()
        seen.see(((images.float() * scale + bias) * 255).round(), targets)
    assert seen.wrong.item() == 0
    assert torch.cat(seen.labels).sort().values.tolist() == list(range(SAMPLES))


@pytest.mark.parametrize("way", ["device_put", "asarray", "dlpack"])
def test_jax_copies_the_right_images_without_waiting(numbered, way):
    jax = pytest.importorskip("jax")

    put = {"device_put": jax.device_put, "asarray": jax.numpy.asarray, "dlpack": jax.numpy.from_dlpack}[way]

    @jax.jit
    def wrong_ones(images, labels, weights):
        # Work that the comparison waits for, so that a batch is used long after it was delivered.
        weights = jax.lax.fori_loop(0, 20, lambda _, w: w @ w / 100, weights)
        labels = labels.astype("int32") + (weights[0, 0] * 0).astype("int32")
        expected = jax.numpy.stack([labels % 256, labels // 256 + 10, labels * 7 % 256], 1)
        images = images.astype("int32")
        return (images != expected[:, None, None, :]).sum() + (images != expected[:, None, None, :]).any() * 0

    weights = jax.numpy.full((1500, 1500) if DEVICE == "cuda" else (100, 100), 0.01)
    results, labels_seen = [], []
    options = {**OPTIONS, "transform": ENLARGE, "output": "numpy"}
    with shardtool.Loader(numbered, **options) as loader:
        for _ in range(2):
            for batch in loader:
                results.append(wrong_ones(put(batch.images), put(batch.labels.astype(np.int32)), weights))
                labels_seen += batch.labels[batch.valid].tolist()
    assert sum(int(result) for result in results) == 0
    assert len(labels_seen) == 2 * SAMPLES and set(labels_seen[:SAMPLES]) == set(range(SAMPLES))


def test_cupy_copies_the_right_images_without_waiting(numbered):
    cupy = pytest.importorskip("cupy")

    wrong = cupy.zeros((), cupy.int64)
    stream = cupy.cuda.Stream(non_blocking=True)
    spin = cupy.ones((2000, 2000), cupy.float32)
    with shardtool.Loader(numbered, transform=ENLARGE, output="numpy", **OPTIONS) as loader, stream:
        for _ in range(2):
            for batch in loader:
                for _ in range(20):
                    spin = spin @ spin * 0
                images = cupy.asarray(batch.images, blocking=False).astype(cupy.int64)
                labels = cupy.asarray(batch.labels, blocking=False).astype(cupy.int64)
                expected = cupy.stack([labels % 256, labels // 256 + 10, labels * 7 % 256], 1)
                wrong += (images != expected[:, None, None, :]).sum()
    stream.synchronize()
    assert int(wrong) == 0


def test_other_libraries_take_batches_on_the_device_by_dlpack(numbered):
    if DEVICE != "cuda":
        pytest.skip("needs a GPU")
    cupy = pytest.importorskip("cupy")
    kept = []
    with shardtool.Loader(numbered, transform=ENLARGE, device="cuda", **OPTIONS) as loader:
        for batch in loader:
            busy(5)
            kept.append((cupy.from_dlpack(batch.images), cupy.from_dlpack(batch.labels)))
    for images, labels in kept:
        expected = cupy.stack([labels % 256, labels // 256 + 10, labels * 7 % 256], 1)
        assert bool((images == expected[:, :, None, None]).all())


@pytest.mark.parametrize(
    "options",
    [
        {
            "views": {
                "a": {"transform": [*ENLARGE, {"name": "center_crop", "size": SIZE}]},
                "b": {"count": 2, "transform": [{"name": "random_resized_crop", "size": 48}]},
            }
        },
        {"transform": ENLARGE, "mix": {"name": "mixup", "alpha": 0.4}},
        {"transform": [*ENLARGE, {"name": "rand_augment"}]},
        {"transform": ENLARGE, "mix": {"name": "mosaic"}},
        {"transform": ENLARGE, "mix": {"name": "cutmix", "alpha": 1.0}, "samples_per_epoch": 300},
        {"transform": ENLARGE, "channels": 1},
        {"transform": ENLARGE, "repeats": 3},
        {"transform": [*ENLARGE, {"name": "normalize", "mean": [0.5] * 3, "std": [0.5] * 3}]},
    ],
    ids=str,
)
def test_every_kind_of_batch_is_the_same_on_the_device(numbered, options):
    if DEVICE != "cuda":
        pytest.skip("needs a GPU")

    def values(batch):
        found = {"images": getattr(batch, "images", None), "labels": batch.labels}
        found["soft labels"] = getattr(batch, "soft_labels", None)
        for name, images in (getattr(batch, "views", None) or {}).items():
            found |= {f"{name} {number}": view for number, view in enumerate(images)}
        return {name: value.clone() for name, value in found.items() if isinstance(value, torch.Tensor)}

    with shardtool.Loader(numbered, **OPTIONS, **options) as loader:
        expected = [values(batch) for batch in loader]
    with shardtool.Loader(numbered, device="cuda", **OPTIONS, **options) as loader:
        got = []
        for batch in loader:
            busy(3)
            got.append(values(batch))
    assert len(got) == len(expected) > 0 and len(expected[0]) > 1
    for there, here in zip(got, expected):
        assert there.keys() == here.keys()
        for name in here:
            assert torch.equal(there[name].cpu(), here[name]), name


def test_training_and_evaluation_loaders_take_turns_on_one_device(numbered):
    train, evaluate = Seen(), Seen()
    options = {"device": "cuda"} if DEVICE == "cuda" else {}
    with (
        shardtool.Loader(numbered, transform=ENLARGE, **OPTIONS, **options) as first,
        shardtool.Loader(numbered, transform=ENLARGE, **{**OPTIONS, "seed": 8}, **options) as second,
    ):
        for _ in range(2):
            for batch, other in zip(first, second):
                busy(5)
                train.see(batch.images, batch.labels, batch.valid)
                busy(5)
                evaluate.see(other.images, other.labels, other.valid)
    train.check(2)
    evaluate.check(2)
