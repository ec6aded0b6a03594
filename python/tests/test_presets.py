"""Transforms by name: the pipelines of the published recipes, and their images with fixed random draws."""

import io
import json
import re
import tarfile

import numpy as np
import PIL
import pytest
import torch
from philox import Draws
from PIL import Image
from torchvision import transforms
from torchvision.transforms import functional

import shardtool
from datasets import run_node

try:
    import timm.data as timm_data
except ImportError:
    timm_data = None
try:
    import open_clip
except ImportError:
    open_clip = None

BICUBIC = transforms.InterpolationMode.BICUBIC
BILINEAR = transforms.InterpolationMode.BILINEAR
IMAGENET = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
FLOATS = [transforms.ToTensor(), transforms.Normalize(*IMAGENET)]
#: Pillow 13 resizes the columns of some images first, where bicubic overshoots elsewhere (docs/transforms.md).
LEVELS = 2 if int(PIL.__version__.split(".")[0]) < 10 else 8


@pytest.fixture(scope="module")
def presets():
    printed = json.loads(run_node("packages/cli/lib/main.js", "transforms", "--json"))
    return {preset["name"]: preset for preset in printed["transforms"]}


def originals():
    """The pipelines of the programs, by the name of the preset."""
    yield (
        "torchvision/resnet50-v2",
        [
            transforms.RandomResizedCrop(176, interpolation=BILINEAR),
            transforms.RandomHorizontalFlip(),
            transforms.TrivialAugmentWide(interpolation=BILINEAR),
            *FLOATS,
            transforms.RandomErasing(p=0.1),
        ],
    )
    yield (
        "mae",
        [
            transforms.RandomResizedCrop(224, (0.2, 1), interpolation=BICUBIC),
            transforms.RandomHorizontalFlip(),
            *FLOATS,
        ],
    )
    jitter = transforms.ColorJitter(0.8, 0.8, 0.8, 0.2)
    yield (
        "simclr",
        [
            transforms.RandomResizedCrop(224, interpolation=BICUBIC),
            transforms.RandomHorizontalFlip(),
            transforms.RandomApply([jitter], p=0.8),
            transforms.RandomGrayscale(0.2),
            # RandomApply of a blur, which is the parameter p of the blur in shardtool.
            {"name": "gaussianBlur", "kernelSize": 23, "sigma": [0.1, 2], "p": 0.5},
            transforms.ToTensor(),
        ],
    )
    if timm_data is not None:
        train = {"is_training": True, "interpolation": "random"}
        for letter, size, config in (("a1", 224, "rand-m7"), ("a2", 224, "rand-m7"), ("a3", 160, "rand-m6")):
            pipeline = timm_data.create_transform(size, auto_augment=f"{config}-mstd0.5-inc1", **train)
            yield f"timm/resnet50-{letter}", pipeline
        # DeiT III: timm's crop and flip, ThreeAugment, jitter.
        deit = timm_data.create_transform(224, is_training=True, interpolation="bicubic", color_jitter=0.3)
        yield "deit3", [*deit.transforms[:2], {"name": "threeAugment"}, *deit.transforms[2:]]
    yield (
        "deit3/src",
        [
            transforms.Resize(224, interpolation=BICUBIC),
            transforms.RandomCrop(224, padding=4, padding_mode="reflect"),
            transforms.RandomHorizontalFlip(),
            {"name": "threeAugment"},
            transforms.ColorJitter(0.3, 0.3, 0.3),
            *FLOATS,
        ],
    )
    if open_clip is not None:
        yield "open_clip", open_clip.image_transform(224, is_train=True)


ORIGINALS = dict(originals())

#: Values that a translation states and a preset leaves at their defaults.
DEFAULTS = {
    "scale": [0.08, 1],
    "ratio": [3 / 4, 4 / 3],
    "interpolation": "bilinear",
    "nummagnitudebins": 31,
    "fill": [124, 116, 104],
    "p": 0.5,
    "value": 0,
}
DEFAULTS_OF = {
    "randomerasing": {"scale": [0.02, 0.33], "ratio": [0.3, 3.3], "p": None},
    "trivialaugmentwide": {"interpolation": "nearest"},
    "timmaugment": {"interpolation": "random"},
    "randomapply": {"p": None},
    "randomcrop": {"fill": 0, "padifneeded": False},
    "resize": {"scale": None},
}


def folded(name):
    return name.replace("_", "").lower()


def canonical(step):
    """A step without its default values, and with one spelling of names and values."""
    name = folded(step["name"])
    defaults = {**DEFAULTS, **DEFAULTS_OF.get(name, {})}
    found = {"name": name}
    for key, value in step.items():
        if key == "name":
            continue
        key, value = folded(key), canonical_value(folded(key), value)
        if key not in defaults or defaults[key] != value:
            found[key] = value
    return found


def canonical_value(key, value):
    if key == "transforms":
        return [[canonical(step) for step in (item if isinstance(item, list) else [item])] for item in value]
    if key in ("size", "kernelsize") and isinstance(value, list) and len(set(value)) == 1:
        return value[0]
    if key in ("brightness", "contrast", "saturation") and isinstance(value, (int, float)):
        return [pytest.approx(max(0, 1 - value)), pytest.approx(1 + value)]
    if key == "hue" and isinstance(value, (int, float)):
        return [-value, value]
    if key == "interpolation" and value == ["bilinear", "bicubic"]:
        return "random"
    if key == "config":
        return re.sub(r"-(n2|p0\.5)(?=-|$)", "", value)
    return value


@pytest.mark.parametrize("name", ORIGINALS)
def test_a_preset_has_the_steps_and_parameters_of_the_original(presets, name):
    pipeline = ORIGINALS[name]
    want = shardtool.steps_from(pipeline if not isinstance(pipeline, transforms.Compose) else pipeline.transforms)
    got = [canonical(step) for step in presets[name]["steps"]]
    assert got == [canonical(step) for step in want]


@pytest.fixture(scope="module")
def pillow_images(photos):
    found = {}
    for shard in sorted(photos.glob("*.tar")):
        with tarfile.open(shard) as tar:
            for member in [member for member in tar.getmembers() if not member.name.endswith(".cls")]:
                data = tar.extractfile(member).read()
                found[member.name.rpartition(".")[0]] = Image.open(io.BytesIO(data)).convert("RGB")
    return found


EVALS = {
    "eval224": [transforms.Resize(256), transforms.CenterCrop(224)],
    "timm/resnet50-eval": [transforms.Resize(235, interpolation=BICUBIC), transforms.CenterCrop(224), *FLOATS],
    "torchvision/resnet50-v2-eval": [transforms.Resize(232), transforms.CenterCrop(224), *FLOATS],
    "open_clip-eval": [
        transforms.Resize(224, interpolation=BICUBIC),
        transforms.CenterCrop(224),
        transforms.ToTensor(),
        transforms.Normalize((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)),
    ],
}


def in_levels(image, steps):
    """Values of a tensor in levels of 0 to 255."""
    image = image.to(torch.float64)
    for step in reversed(steps):
        if step["name"] == "normalize":
            image = image * torch.tensor(step["std"]).view(3, 1, 1) + torch.tensor(step["mean"]).view(3, 1, 1)
        if step["name"] == "toDtype":
            image = image * 255
    return image


def tensor_of(image):
    return image if isinstance(image, torch.Tensor) else torch.from_numpy(np.array(image)).permute(2, 0, 1)


@pytest.mark.parametrize("name", EVALS)
def test_an_evaluation_gives_the_images_of_the_original(photos, pillow_images, presets, lent_readers, name):
    original = transforms.Compose(EVALS[name])
    options = {"transform": name, "batch_size": 20, "shuffle": False, "decode": "exact", "with_keys": True}
    with shardtool.Loader(photos, samples_per_epoch=20, **options) as loader:
        ((images, _, keys),) = list(loader)
    steps = presets[name]["steps"]
    for image, key in zip(images, keys):
        want = tensor_of(original(pillow_images[key]))
        assert image.shape == want.shape
        assert (in_levels(image, steps) - in_levels(want, steps)).abs().max() <= LEVELS + 0.01


CROPS = ["mae", "open_clip", "timm/resnet50-a1", "timm/resnet50-a3", "torchvision/resnet50-v2", "deit3", "simclr"]


@pytest.mark.parametrize("name", CROPS)
def test_crop_and_flip_are_those_of_the_original_with_the_same_draws(
    photos, pillow_images, presets, lent_readers, name
):
    steps = [step for step in presets[name]["steps"] if step["name"] in ("randomResizedCrop", "randomHorizontalFlip")]
    steps += [step for step in presets[name]["steps"] if step["name"] in ("toDtype", "normalize")]
    options = {"batch_size": 20, "seed": 11, "decode": "exact", "with_keys": True, "samples_per_epoch": 20}
    with shardtool.Loader(photos, transform=steps, **options) as loader:
        (batch,) = list(loader)
    crop = steps[0]
    for image, key, number in zip(batch.images, batch.keys, batch.indices):
        draws = Draws(11, 0, int(number))
        pillow = pillow_images[key]
        rect = draws.crop(*pillow.size, crop.get("scale", (0.08, 1)))
        interpolation = crop.get("interpolation", "bilinear")
        if interpolation == "random":
            interpolation = ("bilinear", "bicubic")[draws.below(2)]
        want = functional.resized_crop(
            pillow, *rect, [crop["size"]] * 2, interpolation=transforms.InterpolationMode(interpolation)
        )
        if any(step["name"] == "randomHorizontalFlip" for step in steps) and draws.next() < 0.5:
            want = functional.hflip(want)
        want = tensor_of(want).to(torch.float64)
        assert (in_levels(image, steps) - want).abs().max() <= LEVELS + 0.01


def test_every_preset_runs_in_a_loader(photos, presets, lent_readers):
    for name, preset in presets.items():
        sizes = [step["size"] for step in preset["steps"] if "size" in step]
        with shardtool.Loader(photos, transform=name, batch_size=4, samples_per_epoch=4) as loader:
            (batch,) = list(loader)
        assert batch.images.shape == (4, 3, sizes[-1], sizes[-1])


def test_a_preset_may_be_printed_changed_and_given_as_a_file(photos, presets, lent_readers, tmp_path):
    steps = json.loads(run_node("packages/cli/lib/main.js", "transforms", "mae"))
    assert steps == presets["mae"]["steps"]
    steps[0]["size"] = 96
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(steps))
    with shardtool.Loader(photos, transform=str(file), batch_size=4) as loader:
        assert next(iter(loader)).images.shape == (4, 3, 96, 96)
    with (
        shardtool.Loader(photos, transform="timm/resnet50a1") as loader,
        pytest.raises(shardtool.OptionError, match='did you mean "timm/resnet50-a1"'),
    ):
        next(iter(loader))
