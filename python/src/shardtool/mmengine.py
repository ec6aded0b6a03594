"""Files of shards for MMEngine, and so for MMPretrain, MMDetection and MMSegmentation.

import shardtool.mmengine   # or custom_imports = dict(imports=["shardtool.mmengine"]) in a config

backend_args = dict(backend="shards", location="shards/train", prefix="data/train/")
"""

from __future__ import annotations

import posixpath
from importlib import import_module
from os import fspath
from typing import Any, Dict, Union

from .dataset import Dataset

_fileio: Any = import_module("mmengine.fileio")


class ShardBackend(_fileio.BaseStorageBackend):  # type: ignore[misc]
    """Files by the paths that they had before they were packed: the key of a sample, a dot and a field of it.

    ``location``: the dataset. ``prefix`` is the beginning of paths that keys lack, such as ``data_root``. The object
    may be pickled and used in the workers of a DataLoader: each process has its own reader. The returned bytes are
    copies. ``options``: those of :class:`shardtool.Dataset`.
    """

    def __init__(self, location: Any, prefix: str = "", **options: Any) -> None:
        self._prefix = prefix
        self._dataset: Dataset[Any] = Dataset(location, transform="raw", output="numpy", **options)

    def get(self, filepath: Any) -> bytes:
        """The bytes of a file. Raises FileNotFoundError if there is no file with this name."""
        value = self._value(filepath)
        if isinstance(value, str):
            return value.encode()
        if not isinstance(value, bytes):
            raise TypeError(
                f"{filepath} is stored as a {type(value).__name__}, not as bytes: read it with shardtool.Dataset."
            )
        return value

    def get_text(self, filepath: Any, encoding: str = "utf-8") -> str:
        """The text of a file."""
        value = self._value(filepath)
        return value if isinstance(value, str) else self.get(filepath).decode(encoding)

    def exists(self, filepath: Any) -> bool:
        """Whether there is a file of this name."""
        try:
            self._value(filepath)
        except FileNotFoundError:
            return False
        return True

    isfile = exists

    def join_path(self, filepath: Any, *filepaths: Any) -> str:
        """The parts of a path as one."""
        return posixpath.join(fspath(filepath), *map(fspath, filepaths))

    def _value(self, filepath: Any) -> Union[bytes, str, Any]:
        path = fspath(filepath)
        name = path[len(self._prefix) :] if path.startswith(self._prefix) else path
        folder, _, base = name.lstrip("/").rpartition("/")
        stem, _, field = base.partition(".")
        key = f"{folder}/{stem}" if folder else stem
        fields: Dict[str, Any] = {}
        if key in self._dataset:
            fields = self._dataset.raw(key)
            if field in fields:
                return fields[field]
        there = f"Sample {key} has the fields {', '.join(fields)}" if fields else f"There is no sample {key}"
        raise FileNotFoundError(
            f"{path} is not in the shards. {there}. If all paths start with the same folder, set "
            "prefix= to that folder."
        )


_fileio.register_backend("shards", ShardBackend, force=True)
