"""Published configurations of timm, torchvision, open_clip and DINOv3, compared with the original on 300 images.

The random numbers of the originals are those of the sample, computed here by Philox, in the order in which the
originals draw. Pillow makes the crops, as published. The steps after them run on tensors if the original is
torchvision's or changes hues, because shardtool follows the arithmetic of tensors. SHARDTOOL_DINOV3 names a checkout of
facebookresearch/dinov3; then its own class and configurations are the originals, too.
"""

import importlib
import io
import json
import os
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch
from philox import Draws
from PIL import Image

import shardtool
from datasets import CHECKOUT, pack, run_node

sys.path.insert(0, str(CHECKOUT / "test/fixtures/transforms"))

v1 = pytest.importorskip("torchvision.transforms")
v2 = pytest.importorskip("torchvision.transforms.v2")
timm_data = pytest.importorskip("timm.data")
open_clip = pytest.importorskip("open_clip")
forced = pytest.importorskip("forced").forced

pytestmark = [pytest.mark.long, pytest.mark.time_limit(600)]

COUNT = 300
SEED = 20
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
BICUBIC = v2.InterpolationMode.BICUBIC
BILINEAR = v2.InterpolationMode.BILINEAR


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """300 images, each a different part of a photo."""
    folder = tmp_path_factory.mktemp("images")
    photos = sorted((CHECKOUT / "examples" / "photos").rglob("*.jpg"))
    rng = np.random.default_rng(3)
    for number in range(COUNT):
        photo = Image.open(photos[number % len(photos)]).convert("RGB")
        width, height = (int(rng.integers(side // 2, side + 1)) for side in photo.size)
        left, top = int(rng.integers(photo.width - width + 1)), int(rng.integers(photo.height - height + 1))
        part = photo.crop((left, top, left + width, top + height))
        file = folder / "a" / f"{number:03}.jpg"
        file.parent.mkdir(exist_ok=True)
        part.save(file, quality=92, subsampling=0)
    return pack(folder, tmp_path_factory.mktemp("shards") / "shards")


def torchvision_train(size, policy, erasing):
    """The preset of torchvision's references/classification (ClassificationPresetTrain)."""
    return v2.Compose(
        [
            v2.RandomResizedCrop(size, interpolation=BILINEAR, antialias=True),
            v2.RandomHorizontalFlip(0.5),
            policy,
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, STD),
            *([v2.RandomErasing(p=erasing)] if erasing else []),
        ]
    )


def clip_train(**aug_cfg):
    return open_clip.image_transform(224, is_train=True, aug_cfg=open_clip.AugmentationCfg(**aug_cfg))


#: Steps that run on Pillow images in all pipelines.
CROPS = (v2.RandomResizedCrop, v2.RandomHorizontalFlip)
PIPELINES = {
    "timm A1": lambda: timm_data.create_transform(
        224, is_training=True, auto_augment="rand-m7-mstd0.5-inc1", interpolation="random"
    ),
    "timm A3": lambda: timm_data.create_transform(
        160, is_training=True, auto_augment="rand-m6-mstd0.5-inc1", interpolation="random"
    ),
    "timm ConvNeXt": lambda: timm_data.create_transform(
        224,
        is_training=True,
        auto_augment="rand-m9-mstd0.5-inc1",
        interpolation="bicubic",
        re_prob=0.25,
        re_mode="pixel",
    ),
    "torchvision ResNet-50 V2": lambda: torchvision_train(176, v2.TrivialAugmentWide(interpolation=BILINEAR), 0.1),
    "torchvision ViT-B/16": lambda: torchvision_train(224, v2.RandAugment(interpolation=BILINEAR), 0),
    "torchvision EfficientNetV2-S": lambda: torchvision_train(300, v2.TrivialAugmentWide(interpolation=BILINEAR), 0.1),
    "open_clip ViT-B/32": clip_train,
    "open_clip ViT-H/14": lambda: clip_train(scale=(0.33, 1.0), re_prob=0.35, use_timm=True),
    "open_clip ConvNeXt-Large-D": lambda: clip_train(
        scale=(0.4, 1.0), color_jitter=(0.32, 0.32, 0.32, 0.08), color_jitter_prob=0.8, gray_scale_prob=0.2
    ),
    "open_clip evaluation": lambda: open_clip.image_transform(224, is_train=False),
}


#: Names of the pipelines whose colours change on tensors.
ON_TENSORS = ("torchvision", "open_clip ConvNeXt")


class Numbered:
    """Random numbers as a list that is read in order."""

    def __init__(self, draws):
        self.draws = draws

    def __len__(self):
        return 2**30

    def __getitem__(self, at):
        assert at == self.draws.at
        return self.draws.next()


def original(pipeline, image, numbers, on_tensors):
    """The result of the pipeline with these random numbers: float64 [3, h, w]. Values that it draws: NaN."""

    def unknown(self, *_):
        return self.fill_(float("nan"))

    keep, torch.Tensor.normal_ = torch.Tensor.normal_, unknown
    try:
        with forced([0.0]) as drawn:
            drawn.numbers = Numbered(numbers)
            for step in pipeline.transforms:
                if on_tensors and isinstance(image, Image.Image) and not isinstance(step, CROPS):
                    image = v2.functional.pil_to_tensor(image)
                if isinstance(step, v1.ToTensor) and isinstance(image, torch.Tensor):
                    step = v2.ToDtype(torch.float32, scale=True)
                image = step(image)
    finally:
        torch.Tensor.normal_ = keep
    return torch.as_tensor(np.asarray(image)).to(torch.float64)


def levels(got, want, std):
    """Differences in levels of 0 to 255, where the original does not draw values itself."""
    scale = 255 * torch.tensor(std, dtype=torch.float64).view(3, 1, 1)
    return ((got.to(torch.float64) - want) * scale).abs()[~torch.isnan(want)].to(torch.float32)


def check(differences, name):
    """Policies multiply a difference of one level; positions exactly between two pixels may take the other one."""
    worst = torch.cat(differences)
    assert (worst > 4.01).double().mean() < 0.01, f"{name}: {(worst > 4.01).double().mean():.4f} of all values"
    assert worst.mean() < 0.5, f"{name}: {worst.mean():.3f} levels on average"
    # A whole image that differs much is another draw. Crops differ from Pillow's by up to a level, and Equalize, which
    # divides by a count of pixels, makes up to 29 levels of it.
    shares = [(one > 32).double().mean().item() for one in differences]
    assert max(shares) < 0.1, f"{name}: {max(shares):.3f} of the values of an image"


@pytest.mark.parametrize("name", PIPELINES)
def test_a_published_pipeline_gives_the_images_of_the_original(shards, name):
    pipeline = PIPELINES[name]()
    std = next(step for step in pipeline.transforms if type(step).__name__ == "Normalize").std
    stored = shardtool.Dataset(shards, transform="raw")
    differences = []
    options = {"batch_size": 50, "seed": SEED, "decode": "exact", "workers": 1}
    with stored, shardtool.Loader(shards, transform=pipeline, **options) as loader:
        for batch in loader:
            for got, number in zip(batch.images, batch.indices.tolist()):
                image = Image.open(io.BytesIO(stored[number].image)).convert("RGB")
                want = original(pipeline, image, Draws(SEED, 0, number), name.startswith(ON_TENSORS))
                assert got.shape == want.shape
                differences.append(levels(got, want, [float(value) for value in std]))
    assert len(differences) == COUNT
    check(differences, name)


def dino_views(size, local, flips):
    """DataAugmentationDINO of dinov3/data/augmentations.py, whose GaussianBlur(p) is a RandomApply of 1 - p."""

    def blur(p):
        return v2.RandomApply([v2.GaussianBlur(9, (0.1, 2.0))], p=1 - p)

    def view(size, scale, *more):
        crop = v2.RandomResizedCrop(size, scale, interpolation=BICUBIC, antialias=True)
        jitter = v2.RandomApply([v2.ColorJitter(0.4, 0.4, 0.2, 0.1)], p=0.8)
        flip = [v2.RandomHorizontalFlip(0.5)] if flips else []
        floats = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
        return v2.Compose([crop, *flip, jitter, v2.RandomGrayscale(0.2), *more, *floats])

    first = view(size, (0.32, 1.0))
    second = view(size, (0.32, 1.0), blur(0.1), v2.RandomSolarize(128, 0.2))
    return [first, second, *[view(local, (0.05, 0.32), blur(0.5))] * 8]


def check_views(shards, name, originals):
    """Compares the views of each image with the results of their pipelines. Views 10 and 11 follow 0 and 1."""
    stored = shardtool.Dataset(shards, transform="raw")
    differences = []
    options = {"batch_size": 20, "seed": SEED, "decode": "exact", "workers": 1}
    with stored, shardtool.Loader(shards, views=name, **options) as loader:
        for batch in loader:
            views = [view for group in batch.views.values() for view in group]
            assert len(views) == len(originals)
            for row, number in enumerate(batch.indices.tolist()):
                image = Image.open(io.BytesIO(stored[number].image)).convert("RGB")
                # Each global view, and a local one that differs from image to image.
                for view in (0, 1, 2 + number % 8, *range(10, len(views))):
                    draws = Draws(SEED, 0, number, view=view % 10 + 1)
                    want = original(originals[view], image, draws, on_tensors=True)
                    # All values of large views would need gigabytes.
                    differences.append(levels(views[view][row], want, STD)[:: 1 + want.numel() // 200_000])
    assert len(differences) == (len(originals) - 7) * COUNT
    check(differences, name)


@pytest.mark.parametrize(
    ("name", "size", "local", "flips"),
    [("dinov3", 224, 96, True), ("dinov3/vit7b16", 256, 112, False), ("dinov2/vitl14", 224, 98, True)],
)
def test_the_views_of_dino_are_those_of_the_original(shards, name, size, local, flips):
    check_views(shards, name, dino_views(size, local, flips))


DINOV3 = os.environ.get("SHARDTOOL_DINOV3")


def dinov3_class():
    """DataAugmentationDINO, without the packages that only its datasets need."""
    for name in ("dinov3", "dinov3.data"):
        module = types.ModuleType(name)
        module.__path__ = [str(Path(DINOV3, *name.split(".")))]
        sys.modules[name] = module
    return importlib.import_module("dinov3.data.augmentations").DataAugmentationDINO


def flat(step):
    """The steps of nested pipelines. A flip that never happens draws a number, which shardtool's views do not draw."""
    if isinstance(step, v2.Compose):
        return [one for part in step.transforms for one in flat(part)]
    return [] if isinstance(step, v2.RandomHorizontalFlip) and step.p == 0 else [step]


@pytest.mark.skipif(DINOV3 is None, reason="SHARDTOOL_DINOV3 names no checkout of facebookresearch/dinov3")
@pytest.mark.parametrize(
    ("config", "name"),
    [
        ("vitl_im1k_lin834", "dinov3"),
        ("dinov3_vit7b16_pretrain", "dinov3/vit7b16"),
        ("dinov3_vitl16_lvd1689m_distilled", "dinov3/vit7b16"),
        ("dinov3_vit7b16_gram_anchor", "dinov3/vit7b16-gram"),
    ],
)
def test_the_views_are_those_of_the_class_and_the_configurations_of_dinov3(shards, config, name):
    yaml = pytest.importorskip("yaml")
    crops = yaml.safe_load(Path(DINOV3, "dinov3/configs/train", f"{config}.yaml").read_text())["crops"]
    made = dinov3_class()(
        crops["global_crops_scale"],
        crops["local_crops_scale"],
        crops["local_crops_number"],
        global_crops_size=crops["global_crops_size"],
        local_crops_size=crops["local_crops_size"],
        gram_teacher_crops_size=crops.get("gram_teacher_crops_size"),
        gram_teacher_no_distortions=crops.get("gram_teacher_no_distortions", False),
        share_color_jitter=crops["share_color_jitter"],
        horizontal_flips=crops["horizontal_flips"],
    )
    wide, narrow = flat(made.geometric_augmentation_global), flat(made.geometric_augmentation_local)
    tails = [made.global_transfo1, made.global_transfo2, *[made.local_transfo] * 8]
    heads = [wide, wide, *[narrow] * 8]
    if crops.get("gram_teacher_no_distortions"):
        heads += [wide, wide]
        tails += [v2.Compose([made.resize_gram_teacher, made.normalize])] * 2
    check_views(shards, name, [v2.Compose([*head, *flat(tail)]) for head, tail in zip(heads, tails)])


def test_the_presets_of_dino_are_printed_as_json_that_a_loader_takes(shards, tmp_path):
    printed = run_node("packages/cli/lib/main.js", "transforms", "dinov2")
    file = tmp_path / "mine.json"
    file.write_text(printed)
    assert list(json.loads(printed)) == ["global", "local"]
    options = {"batch_size": 4, "seed": SEED, "workers": 1}
    with (
        shardtool.Loader(shards, views=str(file), **options) as copied,
        shardtool.Loader(shards, views="dinov2", **options) as named,
    ):
        one, other = next(iter(copied)), next(iter(named))
        assert torch.equal(one.views["local"][7], other.views["local"][7])
