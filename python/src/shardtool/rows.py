"""Rows of a table as samples of a writer."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator, Mapping, Optional, Sequence

import numpy as np

from .errors import OptionError


class RowSamples:
    """Which columns of a table are the key, the image, the class, label columns and fields of a sample."""

    def __init__(
        self,
        key: str = "key",
        image: str = "image",
        label: str = "label",
        fields: Sequence[str] = (),
        columns: Optional[Mapping[str, str]] = None,
    ) -> None:
        self._key, self._image, self._label = key, image, label
        self._fields = tuple(fields)
        self._columns = tuple(columns or {})

    def check(self, names: Iterable[str]) -> None:
        """Raises :class:`shardtool.OptionError` for a missing column, and for one that would be lost."""
        there = set(names)
        for name in (self._key, *self._fields, *self._columns):
            if name not in there:
                raise OptionError(f"The table has no column {name!r}; its columns are {', '.join(sorted(there))}.")
        known = {self._key, self._image, self._label, *self._fields, *self._columns}
        lost = sorted(there - known)
        if lost:
            message = f"The column {lost[0]!r} of the table would not be written; drop it, or name it in"
            raise OptionError(f'{message} "fields" (a field of each sample) or "columns" (a label column).')

    def samples(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[Dict[str, Any]]:
        """The arguments of :meth:`shardtool.Writer.add` for each row. Values that are None are omitted."""
        for row in rows:
            sample: Dict[str, Any] = {"key": row[self._key]}
            image, label = row.get(self._image), row.get(self._label)
            if image is not None:
                sample["image"] = image
            if not _is_none(label) and label != -1:
                sample["label"] = label
            if self._columns:
                sample["columns"] = {name: row[name] for name in self._columns if not _is_none(row[name])}
            sample.update((name, _field(name, row[name])) for name in self._fields if row[name] is not None)
            yield sample


def _field(name: str, value: Any) -> Any:
    """The value of a field. Text in a column of JSON is the JSON itself."""
    return value.encode() if name.rsplit(".", 1)[-1] == "json" and isinstance(value, str) else value


def _is_none(value: Any) -> bool:
    return value is None or (isinstance(value, (float, np.floating)) and bool(np.isnan(value)))
