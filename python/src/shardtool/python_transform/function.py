"""The user's function: its parameters, the seeds of its random numbers, and its results."""

from __future__ import annotations

import inspect
import random
import sys
from importlib import import_module
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import numpy as np
from numpy.typing import NDArray

from ..errors import OptionError

#: Names of the parameters that a function may have in addition to the image.
PARAMETERS = (
    "label",
    "key",
    "index",
    "epoch",
    "seed",
    "fields",
    "masks",
    "extra_images",
    "boxes",
    "box_labels",
    "box_rows",
    "keypoints",
)

#: Results with one row per object. Their length varies from sample to sample.
VARYING = ("boxes", "box_labels", "box_rows", "keypoints")

#: Results that are dictionaries of arrays.
_GROUPS = ("masks", "extra_images")

#: If the last axis of an image has one of these lengths, it is the axis of channels.
_CHANNELS = (1, 3, 4)


class ResultError(Exception):
    """The function returned something that cannot be put into a batch."""


class Part(NamedTuple):
    """One array of a result. Its shape and dtype are the same for all samples."""

    #: Path in the result, such as ("image",) or ("masks", "seg.png").
    path: Tuple[str, ...]
    dtype: str
    shape: Tuple[int, ...]
    #: An image [h, w, channels] of NumPy or Pillow. As a tensor it is shown as [channels, h, w].
    is_channels_last: bool

    def __str__(self) -> str:
        return f"{'.'.join(self.path)} {np.dtype(self.dtype).name} {list(self.shape)}"


class Function:
    """Calls the user's function with the arguments that it has parameters for."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.name = getattr(function, "__qualname__", None) or type(function).__name__
        modules = {kind.__module__.partition(".")[0] for kind in type(function).__mro__}
        self._is_albumentations = "albumentations" in modules
        self._takes_pillow = not modules.isdisjoint(("torchvision", "timm"))
        #: Names of the parameters in addition to the image.
        self.parameters: Tuple[str, ...] = ()
        if not self._is_albumentations and not self._takes_pillow:
            self.parameters = _parameters(function, self.name)

    def wants(self, name: str) -> bool:
        """Whether the function takes this in addition to the image."""
        return name in self.parameters or (self._is_albumentations and name == "masks")

    def __call__(self, image: NDArray[Any], seed: int, more: Dict[str, Any]) -> Dict[Tuple[str, ...], Any]:
        """The results for a sample, by path. Seeds the generators first."""
        has_torch = "torch" in sys.modules
        _seed_generators(seed)
        result = self._call(image, seed, more)
        if not has_torch and "torch" in sys.modules:
            # The function has just imported torch, so torch's generator does not have this seed yet.
            _seed_generators(seed)
            result = self._call(image, seed, more)
        return _by_path(result)

    def _call(self, image: NDArray[Any], seed: int, more: Dict[str, Any]) -> Any:
        function = self._function
        if self._is_albumentations:
            return _call_albumentations(function, image, seed, more)
        if self._takes_pillow:
            return function(import_module("PIL.Image").fromarray(image))
        return function(image, **{name: more[name] for name in self.parameters})


def _parameters(function: Callable[..., Any], name: str) -> Tuple[str, ...]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return ()
    wanted = []
    for parameter in parameters[1:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.name in PARAMETERS and parameter.kind != parameter.POSITIONAL_ONLY:
            wanted.append(parameter.name)
        elif parameter.default is parameter.empty:
            raise OptionError(
                f"python_transform={name} has an unknown parameter {parameter.name!r}: the first "
                "parameter is the image, "
                f"and the others can be {', '.join(PARAMETERS)}."
            )
    return tuple(wanted)


def _call_albumentations(function: Any, image: NDArray[Any], seed: int, more: Dict[str, Any]) -> Any:
    if hasattr(function, "set_random_seed"):
        # From version 1.4.19 on, each pipeline has its own generators.
        function.set_random_seed(seed & 0xFFFFFFFF)
    masks = more.get("masks") or {}
    given = {"image": image, **({"masks": list(masks.values())} if masks else {})}
    result = function(**given)
    return {
        "image": result["image"],
        **({"masks": dict(zip(masks, result["masks"]))} if masks else {}),
    }


def _seed_generators(seed: int) -> None:
    """Seeds the global generators of random, NumPy and torch."""
    random.seed(seed)
    np.random.seed([seed >> 32, seed & 0xFFFFFFFF])
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        # Not torch.manual_seed, which seeds GPUs too.
        torch.default_generator.manual_seed(seed)


def _by_path(result: Any) -> Dict[Tuple[str, ...], Any]:
    if not isinstance(result, dict):
        return {("image",): result}
    if "image" not in result:
        raise ResultError(f"it returned a dictionary without 'image': {', '.join(map(str, result)) or 'nothing'}")
    found: Dict[Tuple[str, ...], Any] = {}
    for name, value in result.items():
        if name in _GROUPS and isinstance(value, dict):
            found.update({(name, str(inner)): one for inner, one in value.items()})
        else:
            found[(str(name),)] = value
    return found


def to_array(path: Tuple[str, ...], value: Any) -> Tuple[NDArray[Any], bool]:
    """A result as a NumPy array, and whether it is an image whose last axis is channels."""
    is_tensor = type(value).__module__.partition(".")[0] in ("torch", "torchvision") and hasattr(value, "detach")
    try:
        array = value.detach().cpu().numpy() if is_tensor else np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ResultError(f"its {'.'.join(path)} cannot be converted to a NumPy array ({error})") from None
    if array.dtype.kind not in "biufc":
        raise ResultError(
            f"it returned {type(value).__name__} as {'.'.join(path)}; return an array of numbers, a tensor or a Pillow "
            "image"
        )
    is_image = not is_tensor and path[0] in ("image", "extra_images")
    return array, is_image and array.ndim == 3 and array.shape[-1] in _CHANNELS


def parts_of(results: Dict[Tuple[str, ...], Any]) -> List[Part]:
    """The shapes and dtypes of a result's arrays."""
    parts = []
    for path, value in results.items():
        if path[0] not in VARYING:
            array, is_channels_last = to_array(path, value)
            parts.append(Part(path, array.dtype.str, array.shape, is_channels_last))
    return parts
