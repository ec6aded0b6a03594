"""Goes through a pipeline of torchvision, timm or open_clip and translates it."""

from __future__ import annotations

from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..errors import OptionError
from . import of_timm, of_torchvision
from .pipeline import Pipeline, Step, Untranslatable

_LIBRARIES = ("torchvision", "timm", "open_clip")
#: Transforms that apply others in their order.
_SEQUENCES = (("torchvision", "Compose"), ("torch", "Sequential"))
#: Methods that a subclass may replace without a different result: parameters, string form, pickling.
_HARMLESS = ("__init__", "__repr__", "extra_repr", "__getstate__", "__setstate__", "__reduce__")


def is_foreign(transform: Any) -> bool:
    """Whether this is a transform of another library, or a list that contains one."""
    if isinstance(transform, (str, bytes, Mapping)):
        return False
    if isinstance(transform, Sequence):
        return any(is_foreign(part) for part in transform)
    return callable(transform)


def steps_from(transform: Any, *, channels: int = 3) -> List[Step]:
    """Translates a transform of torchvision (v1 or v2), timm or open_clip into steps, which are plain data.

    ``channels``: the loader's option. With 1, images are gray from the start, so ``Grayscale(1)`` changes nothing.
    ``transform``: a ``Compose``, the result of timm's ``create_transform`` or of ``weights.transforms()``, a single
    transform, or a list of transforms and steps. ``Loader(transform=...)`` calls this itself. It is useful to see the
    steps, to change them, and for ``Dataset``, whose ``transform`` may be any Python function.

    The pipeline is taken to start with a Pillow image, as the transforms of ImageFolder do. Steps on pixels come first
    in the result, then those on values. Raises :class:`OptionError` that names each transform that cannot be
    translated, with the reason.
    """
    parts = _flat(transform)
    pipeline = Pipeline(channels)
    problems: List[_Problem] = []
    #: Number of parts, from the first on, that can be translated and after which images are still bytes.
    before = 0
    for at, part in enumerate(parts):
        try:
            _add(part, pipeline)
        except Untranslatable as reason:
            problems.append(_Problem(at, part, str(reason)))
        if not problems and not pipeline.values:
            before = at + 1
    if problems:
        raise OptionError(_message(problems, before, len(parts)))
    return pipeline.steps()


class _Problem(NamedTuple):
    at: int
    part: Any
    reason: str


def _message(problems: List[_Problem], before: int, parts: int) -> str:
    named = " ".join(
        f"Step {at + 1}, {_name(part)}, cannot be translated: it {reason}." for at, part, reason in problems
    )
    if before == 0:
        remedy = "Use python_transform= for the pipeline, and crop or resize the images to one size in transform=."
    else:
        those = "the first step" if before == 1 else f"the first {before} steps"
        rest = "the last one" if parts - before == 1 else f"the other {parts - before}"
        remedy = (
            f"Give {those} as transform= and {rest} as python_transform=: transform=pipeline.transforms[:{before}], "
            f"python_transform=Compose(pipeline.transforms[{before}:])."
        )
    return f"{named} {remedy}"


def _name(part: Any) -> str:
    if isinstance(part, Mapping):
        return str(dict(part))
    text = repr(part)
    if len(text) <= 100 and "\n" not in text:
        return text
    return getattr(part, "__name__", type(part).__name__)


def _flat(transform: Any) -> List[Any]:
    """The transforms of a pipeline; pipelines within pipelines are joined."""
    if isinstance(transform, Sequence) and not isinstance(transform, (str, bytes)):
        return [part for item in transform for part in _flat(item)]
    if _identity(transform) in _SEQUENCES:
        inner = getattr(transform, "transforms", None)
        return [part for item in (transform if inner is None else inner) for part in _flat(item)]
    return [transform]


def _add(part: Any, pipeline: Pipeline) -> None:
    """Adds the steps of a transform."""
    if isinstance(part, Mapping):
        _add_step(dict(part), pipeline)
        return
    library, kind = _identity(part)
    if library is None:
        if hasattr(part, "__qualname__"):
            raise Untranslatable("is a Python function")
        known = f"{', '.join(_LIBRARIES[:-1])} or {_LIBRARIES[-1]}"
        inner = _pipeline_within(part)
        if inner is not None:
            raise Untranslatable(
                f"is a class of your own; if it only calls its pipeline, pass that: the attribute {inner}"
            )
        raise Untranslatable(f"is not of {known}, or is a subclass with custom code")
    if library == "torchvision" or not of_timm.translate(kind, part, pipeline):
        of_torchvision.translate(kind, part, pipeline, _nested)


def _pipeline_within(part: Any) -> Optional[str]:
    """The name of the only attribute that is a pipeline, as in the presets of torchvision's references."""
    attributes = getattr(part, "__dict__", {}).items()
    names = [name for name, value in attributes if _identity(value) in _SEQUENCES]
    return names[0] if len(names) == 1 else None


def _add_step(step: Step, pipeline: Pipeline) -> None:
    """Adds a step of shardtool that is in a list together with transforms."""
    name = str(step.get("name")).replace("_", "").lower()
    if name in ("todtype", "normalize", "layout") or (name == "randomerasing" and pipeline.values):
        pipeline.values.append(step)
    else:
        pipeline.add(step, moves_pixels_only=False)


def _nested(parts: Sequence[Any], outer: Pipeline) -> List[Step]:
    """The steps of transforms within a container."""
    inner = Pipeline(outer.channels)
    inner.is_tensor, inner.dtype, inner.is_scaled = outer.is_tensor, outer.dtype, outer.is_scaled
    for part in _flat(list(parts)):
        try:
            _add(part, inner)
        except Untranslatable as reason:
            raise Untranslatable(f"contains {_name(part)}, which {reason}") from None
    if inner.values:
        raise Untranslatable(f"contains {inner.values[0]['name']}, which must come after it")
    return inner.pixels


def _identity(part: Any) -> Tuple[Optional[str], str]:
    """The library and class of a transform, or of the class that it is a plain subclass of. (None, name): another."""
    if not isinstance(part, type) and hasattr(part, "__qualname__"):
        # A function, such as open_clip's `_convert_to_rgb`.
        library = _library(getattr(part, "__module__", None))
        return library, str(part.__name__)
    kinds = type(part).__mro__
    if not _replaces(getattr(part, "__dict__", {}), kinds, methods_only=True):
        for at, kind in enumerate(kinds):
            library = _library(kind.__module__)
            if library is None and kind.__module__.startswith("torch.nn") and kind.__name__ == "Sequential":
                library = "torch"
            if library is not None:
                return library, kind.__name__
            if _replaces(vars(kind), kinds[at + 1 :], methods_only=False):
                break
    return None, type(part).__name__


def _replaces(names: Mapping[str, Any], bases: Sequence[type], methods_only: bool) -> bool:
    """Whether a subclass, or an object, has its own methods or constants instead of those of its classes.

    It may then do something else than they do. ``methods_only``: values are parameters, which are read later.
    """
    return any(
        name not in _HARMLESS
        and (callable(value) or not (methods_only or name.startswith("__")))
        and any(name in vars(base) for base in bases if base is not object)
        for name, value in names.items()
    )


def _library(module: Any) -> Optional[str]:
    root = str(module).partition(".")[0]
    return root if root in _LIBRARIES else None
