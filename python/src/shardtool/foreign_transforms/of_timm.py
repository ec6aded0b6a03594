"""The transforms of timm, by the names of their classes."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict

from .pipeline import Pipeline, Untranslatable, plain

#: timm's policy "3a" is the ThreeAugment of DeiT III: three policies of one operation.
_THREE_AUGMENT = [("Solarize", 5), ("Desaturate", 10), ("GaussianBlurRand", 10)]


def translate(kind: str, transform: Any, pipeline: Pipeline) -> bool:
    """Adds the steps of a transform whose class is called ``kind``. False: it is not one of timm's own."""
    special = _SPECIAL.get(kind)
    if special is not None:
        special(transform, pipeline)
    return special is not None


def _random_resized_crop(transform: Any, pipeline: Pipeline) -> None:
    step = {name: plain(getattr(transform, name)) for name in ("size", "scale", "ratio")}
    step["interpolation"] = pipeline.resizing(transform.interpolation)
    pipeline.add({"name": "RandomResizedCrop", **step}, moves_pixels_only=False)


def _erase(transform: Any, pipeline: Pipeline) -> None:
    if transform.rand_color:
        raise Untranslatable('has mode="rand": use "pixel" or "const"')
    if (transform.min_count, transform.max_count) != (1, 1):
        raise Untranslatable("erases several rectangles")
    if transform.num_splits > 1:
        raise Untranslatable("leaves a part of each batch unchanged (num_splits)")
    low, high = transform.log_aspect_ratio
    step = {
        "name": "RandomErasing",
        "p": transform.probability,
        "scale": [transform.min_area, transform.max_area],
        "ratio": [math.exp(low), math.exp(high)],
    }
    pipeline.erase(step, "random" if transform.per_pixel else 0)


def _auto_augment(transform: Any, pipeline: Pipeline) -> None:
    operations = [(operation.name, operation.magnitude) for policy in transform.policy for operation in policy]
    is_certain = all(operation.prob == 1 and not operation.magnitude_std for [operation] in _singles(transform.policy))
    if operations != _THREE_AUGMENT or not is_certain:
        raise Untranslatable('is a policy that shardtool does not have; it has autoAugment of torchvision and "3a"')
    pipeline.add({"name": "threeAugment"}, moves_pixels_only=False)


def _singles(policy: Any) -> Any:
    return [sub for sub in policy if len(sub) == 1]


def _resize_keep_ratio(transform: Any, pipeline: Pipeline) -> None:
    if transform.random_scale_prob or transform.random_aspect_prob:
        raise Untranslatable("has a random scale or aspect ratio")
    raise Untranslatable("is supported only before a CenterCropOrPad of the same size, with longest=1")


def add_letterbox(resize: Any, crop: Any, pipeline: Pipeline) -> bool:
    """Adds a ResizeKeepRatio and the CenterCropOrPad after it as one step. False: the two are something else."""
    is_plain = resize.longest == 1 and not resize.random_scale_prob and not resize.random_aspect_prob
    is_padded = getattr(crop, "padding_mode", "constant") == "constant"
    if not is_plain or not is_padded or plain(resize.size) != plain(crop.size):
        return False
    step = {"name": "letterbox", "size": plain(crop.size), "fill": pipeline.fill(crop.fill)}
    step["interpolation"] = pipeline.resizing(resize.interpolation)
    pipeline.add(step, moves_pixels_only=False)
    return True


def _refuse_policy(transform: Any, pipeline: Pipeline) -> None:
    raise Untranslatable("is a policy of timm that shardtool does not have")


_SPECIAL: Dict[str, Callable[[Any, Pipeline], None]] = {
    "RandomResizedCropAndInterpolation": _random_resized_crop,
    "ResizeKeepRatio": _resize_keep_ratio,
    "AutoAugment": _auto_augment,
    "RandAugment": _refuse_policy,
    "AugMixAugment": _refuse_policy,
    "RandomErasing": _erase,
}
