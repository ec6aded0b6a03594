"""Extra fields: further images, masks, mixing, arrays, custom steps; and float16."""

import json
import zlib

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader

import shardtool
from datasets import CHECKOUT, crc_rows, pack, run_node

pytestmark = pytest.mark.usefixtures("lent_readers")

TRAIN = [
    {"name": "random_resized_crop", "size": 24},
    {"name": "random_horizontal_flip"},
]

REFEREE = """
import { crc32 } from 'node:zlib';
import { openDataset } from '@shardtool/reader';
const [location, options] = process.argv.slice(1);
const dataset = await openDataset(location);
const loader = dataset.loader(JSON.parse(options));
const crc = (array) => crc32(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
const each = (arrays) => Object.fromEntries(Object.entries(arrays).map(([name, array]) => [name, crc(array)]));
for await (const batch of loader) {
  const mix = batch.mix && { ...batch.mix, otherLabels: [...batch.mix.otherLabels] };
  const along = { more: each(batch.extraImages), masks: each(batch.masks), mix };
  console.log(JSON.stringify({ images: crc(batch.images), ...along }));
}
await loader.close();
"""


def referee(location, options):
    printed = run_node("--input-type=module", "-e", REFEREE, location, json.dumps(options))
    return [json.loads(line) for line in printed.splitlines()]


def crc(array):
    return zlib.crc32(np.ascontiguousarray(array))


@pytest.fixture(scope="module")
def along(tmp_path_factory):
    """30 images of 40x32, each with a second image, a mask and an array."""
    folder = tmp_path_factory.mktemp("along")
    rng = np.random.default_rng(3)
    for number in range(30):
        stem = folder / "images" / "ab"[number % 2] / f"{number:02}"
        stem.parent.mkdir(parents=True, exist_ok=True)
        for suffix in (".jpg", ".depth.png"):
            pixels = rng.integers(0, 256, (5, 4, 3), dtype=np.uint8)
            Image.fromarray(pixels).resize((40, 32)).save(f"{stem}{suffix}")
        Image.fromarray(rng.integers(0, 5, (32, 40), dtype=np.uint8)).save(f"{stem}.seg.png")
        np.save(f"{stem}.npy", np.arange(6, dtype=np.float32).reshape(2, 3) + number)
    return pack(folder / "images", folder / "shards", "--fields", "seg.png", "--fields", "depth.png")


def test_more_images_and_masks_are_those_of_the_typescript_loader(along):
    names = {"image": "jpg", "masks": ["seg.png"]}
    wanted = referee(
        along,
        {
            **names,
            "extraImages": ["depth.png"],
            "batchSize": 8,
            "seed": 2,
            "fields": [],
            "transform": [{"name": "randomResizedCrop", "size": 24}, {"name": "randomHorizontalFlip"}],
        },
    )
    with shardtool.Loader(
        along, output="numpy", batch_size=8, seed=2, transform=TRAIN, extra_images=["depth.png"], **names
    ) as loader:
        seen = [
            {
                "images": crc(batch.images),
                "more": {name: crc(images) for name, images in batch.extra_images.items()},
                "masks": {name: crc(mask) for name, mask in batch.masks.items()},
                "mix": batch.mix,
            }
            for batch in loader
        ]
    assert seen == wanted
    with shardtool.Loader(along, batch_size=8, transform=TRAIN, extra_images=["depth.png"], **names) as loader:
        batch = next(iter(loader))
        assert batch.extra_images["depth.png"].shape == batch.images.shape == (8, 3, 24, 24)
        assert batch.masks["seg.png"].shape == (8, 24, 24) and int(batch.masks["seg.png"].max()) < 5


def test_mixed_batches_say_how(along):
    options = {"image": "jpg", "mix": {"name": "cutmix", "alpha": 1.0}, "seed": 9}
    transform = [{"name": "resize", "size": [24, 24]}]
    wanted = referee(along, {**options, "batchSize": 10, "transform": transform, "fields": []})
    with shardtool.Loader(along, batch_size=10, transform=transform, **options) as loader:
        for batch, expected in zip(loader, wanted):
            assert crc(batch.images.permute(0, 2, 3, 1).numpy()) == expected["images"]
            assert batch.mix.name == "cutmix" and batch.mix.weight == expected["mix"]["weight"]
            assert batch.mix.other_labels.tolist() == expected["mix"]["otherLabels"]
            assert batch.mix.other_labels.tolist() == torch.roll(batch.labels, 1).tolist()


@pytest.mark.parametrize("mode", ["batch", "elem"])
def test_soft_labels_are_those_of_timms_formula(along, mode):
    mix = {"name": "timm_mixup", "mixup_alpha": 0.8, "cutmix_alpha": 1.0, "mode": mode, "num_classes": 7}
    transform = [{"name": "resize", "size": [24, 24]}]
    with shardtool.Loader(along, image="jpg", batch_size=6, transform=transform, mix=mix, seed=4) as loader:
        for batch in loader:
            hot = torch.nn.functional.one_hot(batch.labels, 7).float() * 0.9 + 0.1 / 7
            weights = batch.mix.weights[:, None]
            assert batch.mix.name == "timm_mixup" and batch.soft_labels.dtype == torch.float32
            assert batch.mix.other_labels.tolist() == batch.labels.flip(0).tolist()
            assert torch.allclose(batch.soft_labels, hot * weights + hot.flip(0) * (1 - weights), atol=1e-6)
            assert (len(set(batch.mix.weights.tolist())) == 1) == (mode == "batch")


def test_labels_may_be_numbers_of_a_field(along, tmp_path):
    with shardtool.Loader(along, image="jpg", batch_size=30, transform=TRAIN, labels="npy") as loader:
        images, labels = next(iter(loader))
        assert labels.dtype == torch.float32 and labels.shape == (len(images), 6)
    folder = tmp_path / "tagged"
    folder.mkdir()
    for number, tags in enumerate([[1], [], [0, 3]]):
        Image.new("RGB", (8, 8)).save(folder / f"{number}.jpg")
        (folder / f"{number}.json").write_text(json.dumps(tags))
    shards = pack(folder, tmp_path / "shards", "--fields", "json")
    labels = {"field": "json", "classes": 4}
    with shardtool.Loader(shards, batch_size=3, shuffle=False, transform=TRAIN, labels=labels) as loader:
        batch = next(iter(loader))
        rows = {key: row for key, row in zip(batch.indices.tolist(), batch.labels.tolist())}
        assert sorted(rows.values()) == sorted([[0, 1, 0, 0], [0, 0, 0, 0], [1, 0, 0, 1]])
        assert batch.labels.dtype == torch.float32 and batch.valid.all()


def test_labels_outside_of_the_classes_are_an_error(along):
    mix = {"name": "mixup", "num_classes": 1}
    with shardtool.Loader(along, image="jpg", batch_size=6, transform=TRAIN, mix=mix) as loader:
        batches = iter(loader)
        with pytest.raises(ValueError, match="is not one of the 1 classes of mix"):
            next(batches)


def test_arrays_of_numpy_come_as_arrays(along):
    with shardtool.Loader(along, image="jpg", batch_size=30, fields=["npy"], with_keys=True, output="numpy") as loader:
        for batch in loader:
            for key, array in zip(batch.keys, batch.fields["npy"]):
                assert array.dtype == np.float32
                assert array.tolist() == (np.arange(6).reshape(2, 3) + int(key.split("/")[1])).tolist()


def test_arrays_of_numpy_are_tensors_and_a_data_loader_keeps_fields_and_masks(along):
    with shardtool.Loader(along, image="jpg", batch_size=30, fields=["npy"]) as loader:
        for batch in loader:
            assert batch.fields["npy"].shape == (len(batch.labels), 2, 3)
    names = {"image": "jpg", "masks": ["seg.png"], "transform": TRAIN, "seed": 2}
    dataset = shardtool.Dataset(along, fields=["npy", "cls"], **names)
    dataset.set_epoch(3)
    with shardtool.Loader(along, batch_size=8, epoch=3, with_keys=True, **names) as loader:
        batch = next(iter(loader))
    for row, key in enumerate(batch.keys):
        sample = dataset[key]
        assert torch.equal(sample.image, batch.images[row])
        assert torch.equal(sample.masks["seg.png"], batch.masks["seg.png"][row])
        assert list(sample.fields) == ["npy", "cls"]
    for images, labels, more in DataLoader(dataset, batch_size=4, num_workers=1):
        assert more["npy"].shape == (len(labels), 2, 3) and more["seg.png"].shape == (len(images), 24, 24)
        assert torch.equal(more["cls"], labels)
    dataset.close()
    with pytest.raises(shardtool.OptionError, match=r"'seg.png' is in fields and in masks"):
        shardtool.Dataset(along, masks=["seg.png"], fields=["seg.png"])
    with pytest.raises(shardtool.OptionError, match=r"seg.pgn"):
        shardtool.Dataset(along, masks=["seg.pgn"])[0]


def test_float16_images_are_half_tensors(along):
    half = [*TRAIN, {"name": "to_dtype", "dtype": "float16", "scale": True}]
    single = [*TRAIN, {"name": "to_dtype", "dtype": "float32", "scale": True}]
    with (
        shardtool.Loader(along, image="jpg", transform=half, seed=1) as halves,
        shardtool.Loader(along, image="jpg", transform=single, seed=1) as singles,
    ):
        for (images, _), (wanted, _) in zip(halves, singles):
            assert images.dtype == torch.float16
            assert torch.equal(images, wanted.half())


def test_custom_steps_run_in_the_reader(along, tmp_path):
    step = tmp_path / "steps.mjs"
    step.write_text("export function invert(pixels) { for (const i of pixels.keys()) pixels[i] = 255 - pixels[i]; }\n")
    steps = {"pixels": {"module": str(step), "export": "invert"}}
    rows = []
    for own in (None, steps):
        with shardtool.Loader(along, image="jpg", output="numpy", transform=TRAIN, custom_steps=own) as loader:
            rows.append([crc_rows(255 - images if own else images) for images, _ in loader])
    assert rows[0] == rows[1]


def test_the_options_are_those_of_the_typescript_loader():
    source = (CHECKOUT / "packages/reader/src/loader/options.ts").read_text()
    interface = source.split("export interface LoaderOptions {")[1].split("\n}")[0]
    of_reader = {line.split("readonly ")[1].split("?")[0] for line in interface.splitlines() if "  readonly " in line}
    mine = set(shardtool.options.OPTION_NAMES.values())
    # Options for the two processes, options that load_state_dict replaces, and what Python serves itself.
    assert of_reader - mine == {"reuse", "slotFile", "state", "signal", "metrics"}
    assert mine <= of_reader
