"""The transforms of timm, by the names of their classes."""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any, Callable, Dict, List

from .pipeline import Pipeline, Step, Untranslatable, plain


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
    if transform.num_splits > 1:
        raise Untranslatable("leaves a part of each batch unchanged (num_splits)")
    low, high = transform.log_aspect_ratio
    step: Step = {
        "name": "RandomErasing",
        "p": transform.probability,
        "scale": [transform.min_area, transform.max_area],
        "ratio": [math.exp(low), math.exp(high)],
    }
    if (transform.min_count, transform.max_count) != (1, 1):
        step.update(min_count=transform.min_count, max_count=transform.max_count)
    if transform.rand_color or transform.per_pixel:
        pipeline.erase_randomly({**step, "mode": "rand" if transform.rand_color else "pixel"})
    else:
        pipeline.erase(step, 0)


def _rand_augment(transform: Any, pipeline: Pipeline) -> None:
    first = transform.ops[0]
    sections = [f"m{first.magnitude:g}", f"n{transform.num_layers}", f"p{first.prob:g}", *_noise(first, 0)]
    if first.magnitude_max is not None:
        sections.append(f"mmax{first.magnitude_max}")
    # The object has the operations and not the name of their set.
    for name in ("", "inc1", "tweights", "t3a", "t3aw"):
        config = "-".join(["rand", *sections, *([name] if name else [])])
        made = _made("rand_augment_transform", config)
        if _same_operations([made.ops], [transform.ops]) and _list(made.choice_weights) == _list(
            transform.choice_weights
        ):
            _add_policy(config, first, 0.45, pipeline)
            return
    raise Untranslatable("has custom operations, which have no name in timm")


def _auto_augment(transform: Any, pipeline: Pipeline) -> None:
    first = transform.policy[0][0]
    for name in ("original", "originalr", "v0", "v0r", "3a"):
        config = "-".join([name, *_noise(first, 0)])
        if _same_operations(_made("auto_augment_transform", config).policy, transform.policy):
            _add_policy(config, first, 0.45, pipeline)
            return
    raise Untranslatable("has custom operations, which have no name in timm")


def _aug_mix(transform: Any, pipeline: Pipeline) -> None:
    first = transform.ops[0]
    sections = [f"m{first.magnitude:g}", f"w{transform.width}", *_noise(first, math.inf)]
    if transform.depth > 0:
        sections.append(f"d{transform.depth}")
    if transform.alpha != 1:
        sections.append(f"a{transform.alpha:g}")
    if transform.blended:
        sections.append("b1")
    config = "-".join(["augmix", *sections])
    made = _made("augment_and_mix_transform", config)
    if not _same_operations([made.ops], [transform.ops]):
        raise Untranslatable("has custom operations, which have no name in timm")
    _add_policy(config, first, 0.3, pipeline)


def _noise(operation: Any, usual: float) -> List[str]:
    """The section of the noise of magnitudes, unless it is the usual one."""
    deviation = float(operation.magnitude_std)
    if deviation == usual:
        return []
    return ["mstd101" if math.isinf(deviation) else f"mstd{deviation:g}"]


def _made(function: str, config: str) -> Any:
    """The policy that timm makes from a name. The given policy is compared with it."""
    return getattr(import_module("timm.data.auto_augment"), function)(config, {"translate_const": 100})


def _same_operations(some: Any, others: Any) -> bool:
    def described(policies: Any) -> Any:
        return [
            [(one.name, one.prob, one.magnitude, float(one.magnitude_std), one.magnitude_max) for one in operations]
            for operations in policies
        ]

    return bool(described(some) == described(others))


def _add_policy(config: str, first: Any, translated: float, pipeline: Pipeline) -> None:
    """Adds a policy with the interpolation and the fill of its first operation; timm gives all of them the same."""
    resample = first.kwargs["resample"]
    step: Step = {"name": "timmAugment", "config": config}
    step["interpolation"] = (
        "random" if isinstance(resample, (list, tuple)) else {2: "bilinear", 3: "bicubic"}.get(int(resample))
    )
    if step["interpolation"] is None:
        raise Untranslatable(f"interpolates with {resample!r}; it can be bilinear or bicubic")
    step["fill"] = pipeline.fill(first.kwargs["fillcolor"])
    part = first.hparams.get("translate_pct", 0.45)
    if part != translated:
        step["translatePct"] = part
    pipeline.add(step, moves_pixels_only=False)


def _list(weights: Any) -> Any:
    return None if weights is None else list(weights)


def _to_tensor(transform: Any, pipeline: Pipeline) -> None:
    """Unlike torchvision's, it leaves values from 0 to 255."""
    pipeline.convert(plain(transform.dtype), scale=False)


_SPECIAL: Dict[str, Callable[[Any, Pipeline], None]] = {
    "RandomResizedCropAndInterpolation": _random_resized_crop,
    "AutoAugment": _auto_augment,
    "RandAugment": _rand_augment,
    "AugMixAugment": _aug_mix,
    "RandomErasing": _erase,
    "ToTensor": _to_tensor,
}
