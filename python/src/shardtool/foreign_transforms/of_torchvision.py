"""The transforms of torchvision, v1 and v2, and of open_clip, by the names of their classes."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional

from .. import steps as known_steps
from .pipeline import Pipeline, Step, Untranslatable, plain

#: Translates the transforms of a container into steps, and refuses conversions of values among them.
Nested = Callable[[Any, Pipeline], List[Step]]

#: Steps that only move pixels, if they resize nothing and add no border: they commute with Normalize.
_MOVES_PIXELS = ("RandomHorizontalFlip", "RandomVerticalFlip", "CenterCrop", "RandomCrop", "Pad")

#: Classes of shardtool.steps whose names differ from torchvision's.
_CLASS_NAMES = {"JPEG": "Jpeg"}

#: Parameters whose names differ: by the class, then by shardtool's name.
_OTHER_NAMES = {"RandomIoUCrop": {"sampler_options": "options"}}

#: Attributes that change nothing here.
_IGNORED = ("training", "inplace", "antialias", "labels_getter", "p")


def translate(kind: str, transform: Any, pipeline: Pipeline, nested: Nested) -> None:
    """Adds the steps of a transform whose class is called ``kind``. Raises Untranslatable."""
    special = _SPECIAL.get(kind)
    if special is not None:
        special(transform, pipeline)
    elif kind in (*_CONTAINERS, _OF_OPEN_CLIP):
        _add_container(kind, transform, pipeline, nested)
    elif kind in _REASONS:
        raise Untranslatable(_REASONS[kind])
    elif isinstance(_types_of(kind), type):
        _add_same(kind, transform, pipeline)
    else:
        raise Untranslatable("has no equivalent in shardtool")


def _types_of(kind: str) -> Any:
    """The class of :mod:`shardtool.steps` for a transform, or None."""
    return getattr(known_steps, _CLASS_NAMES.get(kind, kind), None)


def _add_same(kind: str, transform: Any, pipeline: Pipeline) -> None:
    """Adds the step with the same name and parameters."""
    parameters = [name for name in _types_of(kind).__annotations__ if name != "name"]
    names = {name: _OTHER_NAMES.get(kind, {}).get(name, name) for name in parameters}
    given = {name: value for name, value in vars(transform).items() if not name.startswith("_")}
    for name, value in given.items():
        if kind == "AutoAugment" and name == "policies":
            if value != transform._get_policies(transform.policy):
                raise Untranslatable(f"has other policies than {plain(transform.policy)!r}")
        elif name not in (*names.values(), *_IGNORED) and not _is_default(name, value):
            raise Untranslatable(f"has {name}={plain(value)!r}, which shardtool does not support")
    step: Step = {"name": kind}
    for parameter, name in names.items():
        if given.get(name) is not None:
            step[parameter] = _value(parameter, given[name], pipeline)
    if "antialias" in parameters:
        step.pop("antialias", None)
        step["interpolation"] = pipeline.resizing(given["interpolation"])
        # Pillow images are always antialiased. Earlier versions have None or "warn", which is False for tensors.
        is_nearest = str(step["interpolation"]).startswith("nearest")
        if pipeline.is_tensor and given.get("antialias") is not True and not is_nearest:
            step["antialias"] = False
    if pipeline.is_normalized and _may_fill(kind, step, pipeline):
        raise Untranslatable(
            "may add a border after Normalize, and the border would have a different color: move it before Normalize"
        )
    pipeline.add(step, kind in _MOVES_PIXELS)


def _may_fill(kind: str, step: Step, pipeline: Pipeline) -> bool:
    """Whether a step on a normalized image can fill a border with a number, which is not a byte there."""
    if kind == "Pad":
        return bool(step.get("padding_mode", "constant") == "constant")
    if kind == "RandomCrop":
        has_border = step.get("padding") is not None or step.get("pad_if_needed")
        return bool(has_border and step.get("padding_mode", "constant") == "constant")
    return kind == "CenterCrop" and not pipeline.covers(step["size"])


def _is_default(name: str, value: Any) -> bool:
    return value is None or (name, plain(value)) in (
        ("padding_mode", "constant"),
        ("fill", 0),
        ("fill", [0.0]),
        ("clip", True),
    )


def _value(parameter: str, value: Any, pipeline: Pipeline) -> Any:
    if parameter == "fill":
        if isinstance(value, dict):
            raise Untranslatable("has a fill for each type: use one fill, and set mask_fill in a list of steps")
        return pipeline.fill(value)
    if parameter == "threshold" and pipeline.is_float:
        return plain(value) * 255
    value = plain(value)
    return value[0] if isinstance(value, list) and len(value) == 1 else value


#: Steps that contain steps, and their parameters other than ``transforms``.
_CONTAINERS = ("RandomApply", "RandomChoice", "RandomOrder")
#: The class of open_clip that applies a ColorJitter with a probability.
_OF_OPEN_CLIP = "color_jitter"


def _add_container(kind: str, transform: Any, pipeline: Pipeline, nested: Nested) -> None:
    items = [transform.transf] if kind == _OF_OPEN_CLIP else list(transform.transforms)
    if kind in ("RandomApply", _OF_OPEN_CLIP):
        step: Step = {"name": "RandomApply", "transforms": nested(items, pipeline), "p": plain(transform.p)}
    else:
        step = {"name": kind, "transforms": [nested([item], pipeline) for item in items]}
        weights = plain(getattr(transform, "p", None))
        if kind == "RandomChoice" and weights is not None and len(set(weights)) > 1:
            step["p"] = weights
    pipeline.add(step, moves_pixels_only=False)


def _to_scaled_float(transform: Any, pipeline: Pipeline) -> None:
    pipeline.convert("float32", scale=True)


def _to_tensor(transform: Any, pipeline: Pipeline) -> None:
    pipeline.is_tensor = True


def _to_pillow(transform: Any, pipeline: Pipeline) -> None:
    if pipeline.is_float:
        raise Untranslatable("converts floats back to bytes: remove the conversion to floats before it")
    pipeline.is_tensor = False


def _to_dtype(transform: Any, pipeline: Pipeline) -> None:
    dtype = transform.dtype
    if isinstance(dtype, dict):
        by_name = {getattr(kind, "__name__", kind): value for kind, value in dtype.items()}
        named = [name for name in ("Image", "Tensor", "others") if name in by_name]
        if not named:
            raise Untranslatable("has no dtype for images")
        dtype = by_name[named[0]]
        if dtype is None:
            return
    # ConvertImageDtype always scales.
    pipeline.convert(plain(dtype), scale=bool(getattr(transform, "scale", True)))


def _normalize(transform: Any, pipeline: Pipeline) -> None:
    mean, std = plain(transform.mean), plain(transform.std)
    pipeline.normalize(mean if isinstance(mean, list) else [mean], std if isinstance(std, list) else [std])


def _erase(transform: Any, pipeline: Pipeline) -> None:
    # v2 has None for "random", and a list of one number for a number.
    value = "random" if transform.value is None else plain(transform.value)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    step = {name: plain(getattr(transform, name)) for name in ("p", "scale", "ratio")}
    pipeline.erase({"name": "RandomErasing", **step}, value)


def _elastic(transform: Any, pipeline: Pipeline) -> None:
    step: Step = {"name": "ElasticTransform", "interpolation": plain(transform.interpolation)}
    for name in ("alpha", "sigma"):
        value = plain(getattr(transform, name))
        values = value if isinstance(value, list) else [value]
        if len(set(values)) > 1:
            raise Untranslatable(f"has {name}={value!r}, but shardtool has one {name} for both directions")
        step[name] = values[0]
    fill = getattr(transform, "fill", 0)
    if not _is_default("fill", fill):
        step["fill"] = _value("fill", fill, pipeline)
    pipeline.add(step, moves_pixels_only=False)


def _grayscale(transform: Any, pipeline: Pipeline) -> None:
    if transform.num_output_channels == 1 and pipeline.channels == 1:
        return
    if transform.num_output_channels != 3:
        raise Untranslatable(
            "has num_output_channels=1, but batches have 3 channels: set channels=1, or use num_output_channels=3"
        )
    pipeline.add({"name": "Grayscale"}, moves_pixels_only=False)


def _random_gray(transform: Any, pipeline: Pipeline) -> None:
    """Of open_clip, which has a class for it."""
    pipeline.add({"name": "RandomGrayscale", "p": plain(transform.p)}, moves_pixels_only=False)


def _rgb(transform: Any, pipeline: Pipeline) -> None:
    """Images are RGB."""
    mode = getattr(transform, "mode", "RGB")
    if mode != "RGB":
        raise Untranslatable(f"converts to {mode}, but batches are RGB")


def _nothing(transform: Any, pipeline: Pipeline) -> None:
    """Changes no image."""


def _classification(transform: Any, pipeline: Pipeline) -> None:
    """The pipeline of ``weights.transforms()``: resize, center crop, floats, normalize."""
    interpolation = pipeline.resizing(transform.interpolation)
    (size,) = plain(transform.resize_size)
    pipeline.add({"name": "Resize", "size": size, "interpolation": interpolation}, moves_pixels_only=False)
    (crop,) = plain(transform.crop_size)
    pipeline.add({"name": "CenterCrop", "size": crop}, moves_pixels_only=True)
    _to_scaled_float(transform, pipeline)
    _normalize(transform, pipeline)


def _segmentation(transform: Any, pipeline: Pipeline) -> None:
    """The pipeline of the weights of segmentation models: resize, floats, normalize."""
    size: Optional[List[int]] = plain(transform.resize_size)
    if size is not None:
        step: Step = {"name": "Resize", "size": size[0] if len(size) == 1 else size}
        step["interpolation"] = pipeline.resizing(transform.interpolation)
        pipeline.add(step, moves_pixels_only=False)
    _to_scaled_float(transform, pipeline)
    _normalize(transform, pipeline)


_SPECIAL: Dict[str, Callable[[Any, Pipeline], None]] = {
    "ToTensor": _to_scaled_float,
    # open_clip and timm: the same, unless the image is a tensor.
    "MaybeToTensor": _to_scaled_float,
    "PILToTensor": _to_tensor,
    "MaybePILToTensor": _to_tensor,
    "ToImage": _to_tensor,
    "ToImageTensor": _to_tensor,
    "ToPureTensor": _nothing,
    "ToPILImage": _to_pillow,
    "ToDtype": _to_dtype,
    "ConvertImageDtype": _to_dtype,
    "ConvertDtype": _to_dtype,
    "Normalize": _normalize,
    "RandomErasing": _erase,
    "Grayscale": _grayscale,
    "gray_scale": _random_gray,
    "ElasticTransform": _elastic,
    "RGB": _rgb,
    "MaybeConvertMode": _rgb,
    "_convert_to_rgb": _rgb,
    "Identity": _nothing,
    "ImageClassification": _classification,
    "ObjectDetection": _to_scaled_float,
    "SemanticSegmentation": _segmentation,
}

_REASONS = {
    "Lambda": "is a Python function. If it only converts images to RGB, remove it, because images are RGB",
    "FiveCrop": "gives several images: use the option views with corner_crop and center_crop (docs/views.md)",
    "TenCrop": "gives several images: use the option views with corner_crop and center_crop (docs/views.md)",
    "LinearTransformation": "multiplies all values of an image by a matrix",
    "MixUp": "mixes a batch: use the option mix of the loader",
    "CutMix": "mixes a batch: use the option mix of the loader",
}
