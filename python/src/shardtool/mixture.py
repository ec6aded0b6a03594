"""Several datasets whose samples are mixed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Union, overload

from .attributes import KnownAttributes
from .errors import OptionError
from .location import absolute

if TYPE_CHECKING:
    from typing import Literal

    import torch
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from .batch import DLPackArray
    from .loader import Loader
    from .options import ListArguments, LoaderArguments, RawArguments, RawListArguments


class Mixture(KnownAttributes):
    """Several datasets, which a :class:`shardtool.Loader` mixes. It takes the place of the location of a loader.

    ``parts``: a mapping for each dataset, such as ``{"dataset": "a/", "weight": 0.7}``, in the order of
    ``batch.dataset_index``. A part may have ``name``, ``weight`` (either all parts or none; shares are exact as
    written) or ``repeat`` (2, 0.5), ``overlay``, ``split``, ``version``, ``layout``, ``exclude_keys``,
    ``max_sample_bytes``, ``classes``, ``keys`` and ``where``. Without weights, every sample occurs once per epoch.

    ``end``: where an epoch with weights ends: with the dataset that is used up ``"first"`` (default) or ``"last"``, or
    with the dataset of this name or number. ``samples_per_epoch`` sets the length of an epoch instead. ``per_batch``:
    rows of each dataset in every batch of all ranks, instead of weights. ``class_lists``: classes of the same name are
    one class (``"name"``), the classes of datasets are numbered in sequence (``"offset"``), or keep their numbers
    (``"apart"``). ``classes``, ``keys``, ``where``, ``weights`` and ``indices`` of a loader apply to the samples of all
    datasets.
    """

    _MADE_WITH = ("parts", "end", "samples_per_epoch", "per_batch", "class_lists", "group", "window")

    def __init__(
        self,
        parts: Sequence[Mapping[str, Any]],
        *,
        end: Optional[Union[str, int]] = None,
        samples_per_epoch: Optional[int] = None,
        per_batch: Optional[Sequence[int]] = None,
        class_lists: Optional[Literal["name", "offset", "apart"]] = None,
        group: Optional[int] = None,
        window: Optional[int] = None,
    ) -> None:
        self._parts = [_part(part, number) for number, part in enumerate(parts)]
        options = {
            "end": end,
            "samplesPerEpoch": samples_per_epoch,
            "perBatch": None if per_batch is None else list(per_batch),
            "classLists": class_lists,
            "group": group,
            "window": window,
        }
        self._options = {name: value for name, value in options.items() if value is not None}

    @overload
    def loader(
        self,
        *,
        collate: Literal["list"],
        transform: Literal["raw"],
        output: Literal["torch", "numpy", "dlpack"] = ...,
        **options: Unpack[RawListArguments],
    ) -> Loader[Any, Any]: ...

    @overload
    def loader(  # type: ignore[overload-overlap]
        self,
        *,
        collate: Literal["list"],
        output: Literal["torch", "numpy", "dlpack"] = ...,
        **options: Unpack[ListArguments],
    ) -> Loader[Any, List[Any]]: ...

    @overload
    def loader(  # type: ignore[overload-overlap]
        self,
        *,
        transform: Literal["raw"],
        output: Literal["torch", "numpy", "dlpack"] = ...,
        **options: Unpack[RawArguments],
    ) -> Loader[Any, List[bytes]]: ...

    @overload
    def loader(
        self,
        *,
        output: Literal["torch"] = ...,
        **options: Unpack[LoaderArguments],
    ) -> Loader[torch.Tensor]: ...

    @overload
    def loader(
        self,
        *,
        output: Literal["numpy"],
        **options: Unpack[LoaderArguments],
    ) -> Loader[NDArray[Any]]: ...

    @overload
    def loader(
        self,
        *,
        output: Literal["dlpack"],
        **options: Unpack[LoaderArguments],
    ) -> Loader[DLPackArray]: ...

    def loader(
        self, *, output: Literal["torch", "numpy", "dlpack"] = "torch", **options: Unpack[LoaderArguments]
    ) -> Loader[Any, Any]:
        """A :class:`shardtool.Loader` of this mixture. ``Loader(mixture, ...)`` is the same."""
        from .loader import Loader

        return Loader(self, output=output, **options)

    def as_location(self) -> Dict[str, Any]:
        """The mixture in the form that is sent to the reader."""
        return {"mixture": self._parts, **self._options}


def _part(part: Mapping[str, Any], number: int) -> Dict[str, Any]:
    if not isinstance(part, Mapping) or part.get("dataset") is None:
        raise OptionError(f'Part {number} of the mixture is {part!r}: write {{"dataset": "folder", "weight": 0.7}}.')
    plain: Dict[str, Any] = {_NAMES.get(name, name): _plain(value) for name, value in part.items() if value is not None}
    plain["dataset"] = absolute(part["dataset"])
    if isinstance(part["dataset"], str):
        plain.setdefault("name", part["dataset"])
    return plain


_NAMES = {"exclude_keys": "excludeKeys", "max_sample_bytes": "maxSampleBytes"}


def _plain(value: Any) -> Union[List[Any], Any]:
    return list(value) if isinstance(value, (tuple, set, frozenset)) else value
