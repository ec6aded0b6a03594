"""Pipelines of torchvision, timm and open_clip as `transform=`: the same images as from the pipeline itself."""

import io
import re
import tarfile
import typing

import numpy as np
import pytest
import torch
import torchvision
from PIL import Image
from torchvision import transforms as v1

import shardtool
from shardtool.foreign_transforms.pipeline import plain

try:
    from torchvision.transforms import v2
except ImportError:  # before torchvision 0.15
    v2 = None
try:
    import timm.data as timm_data
except ImportError:
    timm_data = None
try:
    import open_clip
except ImportError:
    open_clip = None

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def bicubic(namespace):
    return namespace.InterpolationMode.BICUBIC


def ends(namespace):
    """The conversion to floats of v1 or v2."""
    if namespace is v1:
        return [v1.ToTensor()]
    return [v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]


def eval_pipelines():
    """By name: pipelines without random draws, or whose draws have one possible value."""
    for name, t in (("v1", v1), ("v2", v2)):
        if t is None:
            continue
        crop = [t.Resize(72), t.CenterCrop(64)]
        floats = [*ends(t), t.Normalize(MEAN, STD)]
        # This area never fits, so the crop is the largest one of this ratio in the center.
        forced_crop = t.RandomResizedCrop(64, scale=(4, 4), ratio=(1.2, 1.2), interpolation=bicubic(t))
        yield f"{name} bytes", t.Compose(crop)
        yield f"{name} eval", t.Compose([*crop, *floats])
        yield f"{name} bicubic", t.Compose([t.Resize((64, 80), interpolation=bicubic(t)), *floats])
        yield f"{name} max_size", t.Compose([t.Resize(72, max_size=90), t.CenterCrop(96), *floats])
        yield f"{name} floats first", t.Compose([*ends(t), t.Resize(72, antialias=True), t.CenterCrop(64)])
        yield f"{name} not antialiased", t.Compose([*ends(t), t.Resize((64, 64), antialias=False)])
        yield f"{name} moved after Normalize", t.Compose([*crop, *floats, t.RandomHorizontalFlip(p=1)])
        yield f"{name} train", t.Compose([forced_crop, t.RandomHorizontalFlip(p=1), *floats])
        yield (
            f"{name} order",
            t.Compose([t.RandomVerticalFlip(p=1), *crop, t.Pad((1, 2, 3, 4), fill=9), t.RandomInvert(p=1)]),
        )
        yield (
            f"{name} containers",
            t.Compose(
                [
                    *crop,
                    t.RandomApply([t.Compose([t.RandomInvert(p=1), t.Pad(2)])], p=1),
                    t.RandomChoice([t.RandomHorizontalFlip(p=1)]),
                    torch.nn.Sequential(t.RandomVerticalFlip(p=1)),
                ]
            ),
        )
        yield f"{name} reflect", t.Compose([*crop, t.Pad(9, padding_mode="reflect")])
        yield f"{name} jitter", t.Compose([*crop, t.ColorJitter(brightness=(1.3, 1.3)), *floats])
    weights = torchvision.models.ResNet18_Weights.IMAGENET1K_V1
    yield "weights", weights.transforms(crop_size=64, resize_size=72)
    if timm_data is not None:
        yield "timm eval", timm_data.create_transform(64, crop_pct=0.95, interpolation="bicubic")
        yield "timm squash", timm_data.create_transform(64, crop_mode="squash")
        yield "timm border", timm_data.create_transform(64, crop_mode="border", crop_pct=1.0, interpolation="bicubic")
        yield "timm border 0.9", timm_data.create_transform(64, crop_mode="border", crop_pct=0.9)
        yield "timm not square", timm_data.create_transform((3, 64, 48))
        yield "timm no_aug", timm_data.create_transform(64, is_training=True, no_aug=True)
    if open_clip is not None:
        for mode in ("shortest", "longest", "squash"):
            yield f"open_clip {mode}", open_clip.image_transform(64, is_train=False, resize_mode=mode)


PIPELINES = dict(eval_pipelines())


@pytest.fixture(scope="module")
def pillow_images(photos):
    """Every sixth photo by its key, decoded by Pillow."""
    found = {}
    for shard in sorted(photos.glob("*.tar")):
        with tarfile.open(shard) as tar:
            for member in [member for member in tar.getmembers() if not member.name.endswith(".cls")][::6]:
                data = tar.extractfile(member).read()
                found[member.name.rpartition(".")[0]] = Image.open(io.BytesIO(data)).convert("RGB")
    return found


def levels(images, pipeline):
    """Values in levels of 0 to 255."""
    images = images.detach().to(torch.float64)
    steps = shardtool.steps_from(pipeline)
    for step in reversed(steps):
        if step["name"] == "normalize":
            images = images * torch.tensor(step["std"]).view(3, 1, 1) + torch.tensor(step["mean"]).view(3, 1, 1)
        if step["name"] == "toDtype" and step["scale"]:
            images = images * 255
    return images


@pytest.mark.parametrize("name", PIPELINES)
def test_a_pipeline_gives_the_images_that_it_makes_itself(photos, pillow_images, lent_readers, name):
    pipeline = PIPELINES[name]
    keys = list(pillow_images)
    with shardtool.Loader(
        photos, transform=pipeline, batch_size=len(keys), keys=keys, shuffle=False, decode="exact", with_keys=True
    ) as loader:
        ((images, _, seen),) = list(loader)
    assert sorted(seen) == sorted(keys)
    worst = 0.0
    for image, key in zip(images, seen):
        want = pipeline(pillow_images[key].copy())
        if not isinstance(want, torch.Tensor):
            want = torch.from_numpy(np.array(want)).permute(2, 0, 1)
        assert image.shape == want.shape
        assert image.dtype == want.dtype
        worst = max(worst, float((levels(image, pipeline) - levels(want, pipeline)).abs().max()))
    assert worst <= 2.01


def test_every_parameter_of_a_training_pipeline_is_kept():
    pipeline = v1.Compose(
        [
            v1.RandomResizedCrop(32, scale=(0.2, 1), interpolation=bicubic(v1)),
            v1.RandomHorizontalFlip(0.3),
            v1.RandomApply([v1.ColorJitter(0.4, 0.4, 0.2, 0.1)], p=0.8),
            v1.RandomGrayscale(0.2),
            v1.GaussianBlur(9, (0.1, 2.0)),
            v1.TrivialAugmentWide(fill=[1, 2, 3]),
            v1.ToTensor(),
            v1.Normalize(torch.tensor(MEAN), torch.tensor(STD)),
            v1.RandomErasing(0.1, value="random"),
        ]
    )
    jitter = {"brightness": [0.6, 1.4], "contrast": [0.6, 1.4], "saturation": [0.8, 1.2], "hue": [-0.1, 0.1]}
    assert shardtool.steps_from(pipeline) == [
        {
            "name": "RandomResizedCrop",
            "size": [32, 32],
            "scale": [0.2, 1],
            "ratio": [3 / 4, 4 / 3],
            "interpolation": "bicubic",
        },
        {"name": "RandomHorizontalFlip", "p": 0.3},
        {"name": "RandomApply", "transforms": [{"name": "ColorJitter", **jitter}], "p": 0.8},
        {"name": "RandomGrayscale", "p": 0.2},
        {"name": "GaussianBlur", "kernel_size": [9, 9], "sigma": [0.1, 2.0]},
        {"name": "TrivialAugmentWide", "num_magnitude_bins": 31, "interpolation": "nearest", "fill": [1, 2, 3]},
        {"name": "toDtype", "dtype": "float32", "scale": True},
        {"name": "normalize", "mean": MEAN, "std": STD},
        {"name": "RandomErasing", "p": 0.1, "scale": [0.02, 0.33], "ratio": [0.3, 3.3], "value": "random"},
    ]


def of_every_class():
    """By name: a transform of each class of torchvision v2 whose steps have the same name and parameters."""
    invert = [v2.RandomInvert(1)]
    return {
        "AugMix": v2.AugMix(severity=4, mixture_width=2),
        "AutoAugment": v2.AutoAugment(v2.AutoAugmentPolicy.SVHN),
        "CenterCrop": v2.CenterCrop((60, 64)),
        "ColorJitter": v2.ColorJitter(0.4, 0.3, 0.2, 0.1),
        "ElasticTransform": v2.ElasticTransform(40.0, 4.0),
        "GaussianBlur": v2.GaussianBlur(5, (0.2, 1.5)),
        "GaussianNoise": v2.GaussianNoise(0.1, 0.05),
        "Grayscale": v2.Grayscale(3),
        "JPEG": v2.JPEG((20, 80)),
        "Pad": v2.Pad([1, 2, 3, 4], fill=7),
        "RandAugment": v2.RandAugment(3, 5),
        "RandomAdjustSharpness": v2.RandomAdjustSharpness(2, p=0.3),
        "RandomAffine": v2.RandomAffine(15, translate=(0.1, 0.2), scale=(0.8, 1.1), shear=5),
        "RandomApply": v2.RandomApply(invert, p=0.3),
        "RandomAutocontrast": v2.RandomAutocontrast(0.4),
        "RandomChannelPermutation": v2.RandomChannelPermutation(),
        "RandomChoice": v2.RandomChoice([*invert, v2.RandomEqualize(1)], p=[0.25, 0.75]),
        "RandomCrop": v2.RandomCrop(40, padding=4, padding_mode="reflect"),
        "RandomEqualize": v2.RandomEqualize(0.4),
        "RandomErasing": v2.RandomErasing(0.3, scale=(0.1, 0.2), value=9),
        "RandomGrayscale": v2.RandomGrayscale(0.2),
        "RandomHorizontalFlip": v2.RandomHorizontalFlip(0.3),
        "RandomInvert": v2.RandomInvert(0.4),
        "RandomIoUCrop": v2.RandomIoUCrop(min_scale=0.4, trials=20),
        "RandomOrder": v2.RandomOrder([*invert, v2.RandomEqualize(1)]),
        "RandomPerspective": v2.RandomPerspective(0.3, p=0.4),
        "RandomPhotometricDistort": v2.RandomPhotometricDistort(hue=(-0.1, 0.1), p=0.4),
        "RandomPosterize": v2.RandomPosterize(4, p=0.3),
        "RandomResize": v2.RandomResize(40, 60),
        "RandomResizedCrop": v2.RandomResizedCrop(40, scale=(0.3, 1), ratio=(0.9, 1.1)),
        "RandomRotation": v2.RandomRotation(20, expand=False),
        "RandomShortestSize": v2.RandomShortestSize([40, 50], max_size=80),
        "RandomSolarize": v2.RandomSolarize(100, p=0.3),
        "RandomVerticalFlip": v2.RandomVerticalFlip(0.3),
        "RandomZoomOut": v2.RandomZoomOut(fill=3, side_range=(1, 2), p=0.4),
        "Resize": v2.Resize(50, max_size=90),
        "SanitizeBoundingBoxes": v2.SanitizeBoundingBoxes(min_size=3, min_area=20),
        "ScaleJitter": v2.ScaleJitter((60, 50), scale_range=(0.5, 1.5)),
        "TrivialAugmentWide": v2.TrivialAugmentWide(num_magnitude_bins=20),
    }


#: Steps that change values: test_a_pipeline_gives_the_images_that_it_makes_itself tests them.
ON_VALUES = {"Normalize", "ToDtype"}


@pytest.mark.skipif(getattr(v2, "JPEG", None) is None, reason="needs torchvision 0.20 or newer")
def test_every_transform_with_the_name_of_a_step_is_translated_with_its_parameters():
    """The loader accepts the steps, and their parameters are the attributes of the transform."""
    known = [kind for kind in typing.get_args(shardtool.steps.Step) if isinstance(kind, type)]
    names = {name for kind in known for name in re.findall(r"['\"](\w+)['\"]", str(kind.__annotations__["name"]))}
    assert len(names) > 100
    transforms = of_every_class()
    assert {name for name in vars(v2) if name in names} == {*transforms, *ON_VALUES}
    for name, transform in transforms.items():
        step = shardtool.steps_from(transform)[-1]
        given = {name: plain(value) for name, value in vars(transform).items() if not name.startswith("_")}
        for parameter, value in step.items():
            own = given.get({"sampler_options": "options"}.get(parameter, parameter))
            if parameter in ("name", "transforms"):
                continue
            one = own[0] if isinstance(own, list) and len({*own}) == 1 else own
            assert value in (own, one), (name, parameter)
        changed = {name for name in ("quality", "p", "size", "scale", "degrees", "fill") if given.get(name)}
        assert changed <= step.keys(), name


@pytest.mark.skipif(getattr(v2, "JPEG", None) is None, reason="needs torchvision 0.20 or newer")
def test_the_transform_jpeg_gives_its_own_images(photos, pillow_images, lent_readers):
    pipeline = v2.Compose([v2.Resize((64, 80)), v2.CenterCrop(48), v2.JPEG(30)])
    keys = list(pillow_images)[:4]
    with shardtool.Loader(
        photos, transform=pipeline, batch_size=4, keys=keys, shuffle=False, decode="exact", with_keys=True
    ) as loader:
        ((images, _, seen),) = list(loader)
    jpeg = v2.JPEG(30)
    before = {"batch_size": 4, "keys": keys, "shuffle": False, "decode": "exact", "with_keys": True}
    with shardtool.Loader(photos, transform=v2.Compose(pipeline.transforms[:2]), **before) as loader:
        ((resized, _, others),) = list(loader)
    assert seen == others
    for image, given in zip(images, resized):
        assert torch.equal(image, jpeg(given))


def test_erasing_before_normalize_erases_bytes():
    pipeline = v1.Compose([v1.ToTensor(), v1.RandomErasing(1, value=1), v1.Normalize(MEAN, STD)])
    assert [(step["name"], step.get("value")) for step in shardtool.steps_from(pipeline)] == [
        ("RandomErasing", 255),
        ("toDtype", None),
        ("normalize", None),
    ]


def test_crops_after_normalize_that_add_no_border_move_in_front():
    pipeline = [v1.Resize(72), v1.ToTensor(), v1.Normalize(MEAN, STD), v1.CenterCrop(64), v1.Pad(2, 0, "reflect")]
    names = [step["name"] for step in shardtool.steps_from(pipeline)]
    assert names == ["Resize", "CenterCrop", "Pad", "toDtype", "normalize"]


@pytest.mark.skipif(v2 is None, reason="needs torchvision 0.15")
def test_to_dtype_with_a_dtype_for_each_type_converts_images_by_theirs():
    from torchvision import tv_tensors

    def steps(dtypes):
        return shardtool.steps_from([v2.ToImage(), v2.ToDtype(dtypes, scale=True)])

    floats = [{"name": "toDtype", "dtype": "float32", "scale": True}]
    assert steps({tv_tensors.Mask: torch.int64, tv_tensors.Image: torch.float32}) == floats
    assert steps({tv_tensors.Mask: torch.int64, "others": torch.float32}) == floats
    assert steps({tv_tensors.Mask: torch.float32, "others": None}) == []
    with pytest.raises(shardtool.OptionError, match="has no dtype for images"):
        steps({tv_tensors.Mask: torch.float32})


@pytest.mark.skipif(timm_data is None, reason="needs timm")
def test_to_tensor_of_timm_leaves_values_from_0_to_255():
    steps = shardtool.steps_from(timm_data.transforms.ToTensor())
    assert steps == [{"name": "toDtype", "dtype": "float32", "scale": False}]


def test_transforms_and_steps_can_be_mixed_in_a_list(photos, lent_readers):
    steps = [v1.Resize(72), {"name": "center_crop", "size": 64}, v1.ToTensor()]
    with shardtool.Loader(photos, transform=steps, batch_size=4) as loader:
        images = next(iter(loader)).images
    assert images.shape == (4, 3, 64, 64)
    assert images.dtype == torch.float32


class Grayer(v1.RandomApply):
    """A subclass that changes only its parameters."""

    def __init__(self):
        super().__init__([v1.Grayscale(3)], p=0.2)


class Other(v1.RandomHorizontalFlip):
    def forward(self, image):
        return image.rotate(90)


def test_a_subclass_is_translated_unless_it_has_code_of_its_own():
    assert shardtool.steps_from(Grayer()) == [{"name": "RandomApply", "transforms": [{"name": "Grayscale"}], "p": 0.2}]
    with pytest.raises(shardtool.OptionError, match=r"Other\(p=0.5\), cannot be translated"):
        shardtool.steps_from(Other())


@pytest.mark.skipif(open_clip is None, reason="open_clip is not installed")
def test_the_colour_changes_of_open_clip_are_translated_with_their_probabilities():
    changes = {"color_jitter": (0.32, 0.32, 0.32, 0.08), "color_jitter_prob": 0.8, "gray_scale_prob": 0.2}
    pipeline = open_clip.image_transform(64, is_train=True, aug_cfg={"scale": (0.4, 1.0), **changes})
    crop, jitter, gray, *_ = shardtool.steps_from(pipeline)
    assert crop["scale"] == [0.4, 1.0]
    assert (jitter["name"], jitter["p"], jitter["transforms"][0]["name"]) == ("RandomApply", 0.8, "ColorJitter")
    assert gray == {"name": "RandomGrayscale", "p": 0.2}


def test_a_pipeline_of_gray_images_runs_with_one_channel(photos, pillow_images, lent_readers):
    steps = [v1.Grayscale(1), v1.Resize((28, 28)), v1.ToTensor(), v1.Normalize((0.1307,), (0.3081,))]
    pipeline = v1.Compose(steps)
    keys = list(pillow_images)
    options = {"channels": 1, "keys": keys, "batch_size": len(keys), "decode": "exact", "with_keys": True}
    with shardtool.Loader(photos, transform=pipeline, **options) as loader:
        ((images, _, seen),) = list(loader)
    assert tuple(images.shape) == (len(keys), 1, 28, 28)
    for image, key in zip(images, seen):
        # The luma of a JPEG differs from that of its RGB values by a level or two.
        assert (image - pipeline(pillow_images[key])).abs().mean() < 2 / 255 / 0.3081


class Preset:
    """Like the presets of torchvision's references."""

    def __init__(self):
        self.transforms = v1.Compose([v1.RandomResizedCrop(8), v1.ToTensor()])

    def __call__(self, image):
        return self.transforms(image)


class OtherOperations(v1.RandAugment):
    def _augmentation_space(self, num_bins, image_size):
        return {"Invert": (torch.tensor(0.0), False)}


class Compose(v1.Compose):
    """A pipeline with the name of torchvision's, which does something else."""

    def __call__(self, image):
        return self.transforms[-1](image)


class Sequential(torch.nn.Sequential):
    def forward(self, image):
        return self[-1](image)


def with_forward_of_its_own():
    transform = v1.Normalize(MEAN, STD)
    transform.forward = lambda image: image
    return v1.Compose([v1.ToTensor(), transform])


def with_other_policies():
    transform = v1.AutoAugment()
    transform.policies = transform.policies[:2]
    return transform


def after_normalize(*transforms):
    return v1.Compose([v1.ToTensor(), v1.Normalize(MEAN, STD), *transforms])


REFUSED = {
    "other operations": (OtherOperations(), "custom code"),
    "another Compose": (Compose([v1.RandomInvert()]), "custom code"),
    "another Sequential": (Sequential(v1.RandomInvert()), "custom code"),
    "another forward": (with_forward_of_its_own(), "custom code"),
    "other policies": (with_other_policies(), "has other policies than 'imagenet'"),
    "a border after Normalize": (after_normalize(v1.Pad(2)), "may add a border after Normalize"),
    "a border of a crop after Normalize": (after_normalize(v1.RandomCrop(8, padding=2)), "may add a border"),
    "a crop of small images after Normalize": (after_normalize(v1.CenterCrop(64)), "may add a border"),
    "a function": (lambda image: image, "is a Python function"),
    "Lambda": (v1.Lambda(lambda image: image.convert("RGB")), "If it only converts images to RGB, remove it"),
    "one channel": (v1.Grayscale(1), "set channels=1"),
    "a class around a pipeline": (Preset(), "pass that: the attribute transforms"),
    "several images": (v1.FiveCrop(8), "gives several images"),
    "no counterpart": (v1.LinearTransformation(torch.eye(3), torch.zeros(3)), "by a matrix"),
    "in a container": (v1.RandomApply([v1.ToTensor()]), "toDtype, which must come after it"),
    "deep in a container": (v1.RandomApply([v1.Lambda(len)]), "contains Lambda.*, which is a Python function"),
    "Normalize of bytes": (v1.Normalize(MEAN, STD), "before the conversion to floats"),
    "pixels after Normalize": (v1.Compose([v1.ToTensor(), v1.Normalize(MEAN, STD), v1.Resize(8)]), "after Normalize"),
    "other dtypes": (v1.Compose([v1.ToTensor(), v1.ConvertImageDtype(torch.float64)]), "converts to float64"),
}


@pytest.mark.parametrize(("transform", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_a_transform_that_cannot_be_translated_is_an_error_with_the_reason(transform, reason):
    with pytest.raises(shardtool.OptionError, match=reason) as raised:
        shardtool.Loader("nowhere", transform=transform)
    assert "python_transform=" in str(raised.value)


def test_the_error_names_all_such_steps_and_where_to_divide_the_pipeline(photos, lent_readers):
    pipeline = v1.Compose(
        [
            v1.Resize(40),
            v1.CenterCrop(32),
            v1.Lambda(np.asarray),
            v1.ToTensor(),
            v1.Lambda(torch.flip),
            v1.Normalize(0, 1),
        ]
    )
    with pytest.raises(shardtool.OptionError) as raised:
        shardtool.steps_from(pipeline)
    message = str(raised.value)
    assert "Step 3, Lambda" in message
    assert "Step 5, Lambda" in message
    assert "transform=pipeline.transforms[:2], python_transform=Compose(pipeline.transforms[2:])" in message
    rest = v1.Compose([v1.Lambda(np.asarray), v1.ToTensor()])
    with shardtool.Loader(
        photos, transform=pipeline.transforms[:2], python_transform=rest, python_workers=1, batch_size=4
    ) as loader:
        images = next(iter(loader)).images
    assert images.shape == (4, 3, 32, 32)
    assert images.dtype == torch.float32
