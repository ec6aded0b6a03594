"""Converts options from Python to plain values under the names that the reader uses."""

from __future__ import annotations

import math
import numbers
import os
from enum import Enum
from typing import Any, Dict, Iterable, List, Mapping

from ..foreign_transforms import is_foreign, steps_from
from ..options import OPTION_NAMES, LoaderArguments, camel
from .foreign_names import FOREIGN_NAMES, unknown_option


def options_for_reader(options: Mapping[str, Any], slots_in_use: int = 0) -> Dict[str, Any]:
    """Options under the names of the reader. ``slots_in_use``: slots in addition to those of ``prefetch_batches``.

    Raises TypeError for an unknown name.
    """
    given: Dict[str, Any] = {"prefetchBatches": 4}
    for name, value in options.items():
        if name not in OPTION_NAMES:
            raise unknown_option("A loader", name, ("output", *LoaderArguments.__annotations__), FOREIGN_NAMES)
        if value is not None:
            given[OPTION_NAMES[name]] = _plain(name, value, _channels(options))
    if isinstance(given["prefetchBatches"], int):
        given["prefetchBatches"] += slots_in_use
        if slots_in_use > 0:
            # One in use, one that is being delivered, and one that is being made.
            given["prefetchBatches"] = max(3, given["prefetchBatches"])
    return given


def _channels(options: Mapping[str, Any]) -> int:
    """The number of channels for which pipelines are translated. The reader checks the option itself."""
    channels = options.get("channels")
    return channels if isinstance(channels, int) else 3


def _plain(name: str, value: Any, channels: int) -> Any:
    if name == "transform" and is_foreign(value):
        value = steps_from(value, channels=channels)
    if name == "transform" and not isinstance(value, str):
        if not isinstance(value, (list, tuple)):
            raise TypeError(
                "transform must be a preset, a JSON file, a list of steps, or a pipeline of torchvision or timm, "
                f"not {value!r}."
            )
        return [_step(step) for step in value]
    if name == "schedule" and not isinstance(value, (str, Mapping)):
        return [_scheduled(entry, channels) for entry in value]
    if name == "views" and isinstance(value, Mapping):
        return {group: _views(part, channels) for group, part in value.items()}
    if name == "aspect_buckets" and isinstance(value, Mapping):
        return {camel(key): part for key, part in value.items()}
    if name == "annotations":
        return {camel(key): _camel_keys(part) for key, part in value.items()}
    if name == "weights":
        if not isinstance(value, Mapping):
            return _numbers(name, value, dimensions=1, kinds="iuf")
        # Pairs, because keys of JSON objects are always text, and the class number 10 is not the class named "10".
        return [[_class(name, cls), weight] for cls, weight in value.items()]
    if name == "indices":
        return _numbers(name, value, dimensions=2, kinds="iu")
    if name == "cache":
        return os.path.abspath(os.fspath(value))
    if name == "epochs_per_loop" and value == math.inf:
        return "Infinity"
    if name in ("classes", "keys", "fields", "images", "extra_images", "masks", "draws"):
        if isinstance(value, (str, bytes)):
            raise TypeError(f"{name} must be a list, such as [{value!r}].")
        return [_class(name, cls) for cls in value] if name == "classes" else list(value)
    return value


def _scheduled(entry: Any, channels: int) -> Any:
    if not isinstance(entry, Mapping) or "transform" not in entry:
        return entry
    return {**entry, "transform": transform_for_reader(entry["transform"], channels)}


def transform_for_reader(transform: Any, channels: int) -> Any:
    """A transform in the form that the reader takes: plain steps, or the name of a preset."""
    return _plain("transform", transform, channels)


def _views(part: Any, channels: int) -> Any:
    """A group of views, a list of them, or the steps that all views share."""
    if not isinstance(part, Mapping):
        return [_views(item, channels) for item in part] if isinstance(part, (list, tuple)) else part
    if "transform" not in part:
        return _step(part)
    return {**part, "transform": transform_for_reader(part["transform"], channels)}


def _numbers(name: str, value: Any, dimensions: int, kinds: str) -> List[Any]:
    """An array of at most `dimensions` dimensions as a list. The array may be of numpy or torch, or a list."""
    import numpy as np

    whole = "" if "f" in kinds else "whole "
    groups = ", or of groups of one size, [n, k]" if dimensions > 1 else ", of one dimension"
    wrong = f"{name} must be an array of {whole}numbers{groups}"
    if isinstance(value, (str, bytes, Mapping)) or callable(value):
        raise TypeError(f"{wrong}, not {value!r}.")
    try:
        array = np.asarray(value if hasattr(value, "__array__") else list(value))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{wrong}: {error}.") from None
    if not 1 <= array.ndim <= dimensions or (array.size > 0 and array.dtype.kind not in kinds):
        raise TypeError(f"{wrong}, not an array of {array.dtype} with the shape {array.shape}.")
    plain: List[Any] = array.tolist()
    return plain


def _camel_keys(part: Any) -> Any:
    return {camel(key): value for key, value in part.items()} if isinstance(part, Mapping) else part


def _class(option: str, cls: Any) -> str | int:
    """A class by its name or its number, which may be any kind of whole number."""
    if isinstance(cls, str):
        return cls
    if isinstance(cls, numbers.Integral) and not isinstance(cls, bool):
        return int(cls)
    raise TypeError(f"{option}: a class must be a str (its name) or an int (its number), not {cls!r}.")


def _step(step: Mapping[str, Any]) -> Any:
    """A step of a transform. The reader knows ``random_resized_crop``, ``RandomResizedCrop`` and ``max_size``, too."""
    if not isinstance(step, Mapping):
        return step
    return {key: _value(value) for key, value in step.items()}


def _value(value: Any) -> Any:
    """torchvision's own values as text: ``torch.float32``, ``InterpolationMode.BILINEAR``; also within containers."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return _step(value)
    if isinstance(value, (list, tuple)):
        return [_value(item) for item in value]
    return str(value).rsplit(".", 1)[-1] if type(value).__module__ == "torch" else value


def sample_options_for_reader(options: Mapping[str, Any]) -> Dict[str, Any]:
    """The options of single samples, under the names that the reader uses."""
    channels = _channels(options)
    return {OPTION_NAMES[name]: _plain(name, value, channels) for name, value in options.items() if value is not None}


def seen_for_reader(
    overlay: str | None,
    split: str | None,
    layout: str | None,
    features: Mapping[str, str] | None,
    exclude_keys: Iterable[str] | None,
    max_sample_bytes: int | str | None,
    storage: Mapping[str, Any] | None,
    version: str | None = None,
) -> Dict[str, Any]:
    """The options that select the samples of a location, and those of requests, under the names that the reader
    uses."""
    seen: Dict[str, Any] = {"overlay": overlay, "split": split, "layout": layout, "maxSampleBytes": max_sample_bytes}
    seen["features"] = None if features is None else dict(features)
    seen["excludeKeys"] = None if exclude_keys is None else list(exclude_keys)
    seen["version"] = version
    seen["storage"] = None if storage is None else storage_for_reader(storage)
    return {name: value for name, value in seen.items() if value is not None}


def storage_for_reader(storage: Mapping[str, Any]) -> Dict[str, Any]:
    """The option ``storage`` under the names that the reader uses. Raises TypeError for an unknown name."""
    names = {name: camel(name) for name in ("endpoint_url", "region", "unsigned", "requester_pays")}
    for name in storage:
        if name not in names:
            raise unknown_option("storage", name, names, {"endpointUrl": 'Python spells it "endpoint_url"'})
    return {names[name]: value for name, value in storage.items() if value is not None}
