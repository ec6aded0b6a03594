"""Converts and checks the location of a dataset that the caller passes."""

from __future__ import annotations

import os
import re
from typing import Any, List, Sequence, Union

#: A folder, or a list of tars: paths, or locations such as ``s3://bucket/shards`` and ``https://host/shards``.
Location = Union[str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]]]


def place(location: str | os.PathLike[str]) -> str:
    """A location that does not depend on the working directory."""
    text = os.fspath(location)
    # s3://bucket/shards is not below the working directory.
    return text if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text) else os.path.abspath(text)


def absolute(location: Location) -> Union[str, List[str]]:
    """The location of a dataset, independent of the working directory."""
    if isinstance(location, (str, os.PathLike)):
        return place(location)
    if not _is_list(location):
        raise TypeError(
            f"location must be a path, a URL, or a list of them, not {location!r} ({type(location).__name__})."
        )
    return [place(file) for file in location]


def _is_list(value: Any) -> bool:
    """Whether all entries are paths. Text that is not str, such as bytes, is not a list of paths."""
    if isinstance(value, (bytes, bytearray)) or not hasattr(value, "__iter__"):
        return False
    return not hasattr(value, "keys") and all(isinstance(file, (str, os.PathLike)) for file in value)
