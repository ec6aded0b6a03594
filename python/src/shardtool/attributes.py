"""Objects that refuse to set unknown attributes, because ignoring them would hide an error."""

from __future__ import annotations

import difflib
from typing import Any, ClassVar, Mapping, Sequence


class KnownAttributes:
    """Only attributes that have an effect can be set. A subclass of the user may have further ones."""

    #: Names of values that can be given when the object is made, but not set later.
    _MADE_WITH: ClassVar[Sequence[str]] = ()
    #: What to use instead of attributes that other libraries have.
    _INSTEAD: ClassVar[Mapping[str, str]] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        kind = type(self)
        is_users = kind.__module__.partition(".")[0] != "shardtool"
        if not (name.startswith("_") or is_users or _can_be_set(kind, name)):
            raise AttributeError(
                f"A shardtool.{kind.__name__} has no attribute {name!r} that can be set: {self._hint(name)}."
            )
        super().__setattr__(name, value)

    def _hint(self, name: str) -> str:
        kind = type(self)
        if name in self._MADE_WITH:
            return f"give {name}=... when you make it"
        if name in self._INSTEAD:
            return self._INSTEAD[name]
        settable = [own for own in dir(kind) if _can_be_set(kind, own)]
        near = difflib.get_close_matches(name, [*settable, *self._MADE_WITH], n=1)
        if near:
            return f"did you mean {near[0]!r}"
        return f"only {' and '.join(settable)} can be set" if settable else "none of its attributes can be set"


def _can_be_set(kind: type, name: str) -> bool:
    return getattr(getattr(kind, name, None), "fset", None) is not None
