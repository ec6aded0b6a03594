"""The errors that shardtool raises. The message of each says what is wrong and what to do."""

from __future__ import annotations

import signal
import sys
import warnings
from typing import Any, Mapping, Optional, Type


class ShardtoolError(Exception):
    """The base class of all errors of shardtool.

    ``shard``, ``key``, ``offset`` (bytes from the start of the shard) and ``path`` are the location, as far as it is
    known. ``kind`` is the name of the error in docs/errors.md, which has more kinds than Python has classes.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: Optional[str] = None,
        shard: Optional[str] = None,
        key: Optional[str] = None,
        offset: Optional[int] = None,
        path: Optional[str] = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind or type(self).__name__
        self.shard = shard
        self.key = key
        self.offset = offset
        self.path = path

    @property
    def help(self) -> str:
        """The row of docs/errors.md about this kind of error, such as ``"docs/errors.md#optionerror"``."""
        return f"docs/errors.md#{self.kind.lower()}"


class OptionError(ShardtoolError, ValueError):
    """An option or a value is not allowed."""


class StateError(OptionError):
    """A state does not belong to this dataset, order or selection."""


class BadSampleError(ShardtoolError):
    """A sample could not be read, checked or decoded, and ``on_bad`` is ``"raise"``."""


class FileError(ShardtoolError):
    """A file could not be opened or read."""


class UnfinishedPackError(ShardtoolError):
    """A folder has no dataset.json: the pack was interrupted, or the folder is not a dataset."""


class ReaderError(ShardtoolError, RuntimeError):
    """The reader process could not start, ended, or sent an invalid response."""


class StaleIteratorError(ShardtoolError, RuntimeError):
    """A loop over a loader was continued after another loop had started, or after the loader was closed."""


class PythonTransformError(ShardtoolError, RuntimeError):
    """A function given as ``python_transform`` cannot be used, or its worker processes cannot run."""


class ForkedLoaderError(ShardtoolError, RuntimeError):
    """A loader was used in a process other than the one that made it."""


_BY_NAME = {kind.__name__: kind for kind in (OptionError, StateError, BadSampleError, FileError, UnfinishedPackError)}


def error_of_reader(header: Mapping[str, Any]) -> ShardtoolError:
    """The exception for an error that the reader reported. The reader spells options for Python."""
    where = {name: header.get(name) for name in ("shard", "key", "offset", "path")}
    kinds = (_BY_NAME[name] for name in header.get("kinds", [header["name"]]) if name in _BY_NAME)
    kind: Type[ShardtoolError] = next(kinds, ShardtoolError)
    return kind(header["message"], kind=header["name"], **where)


def how_it_ended(code: Optional[int]) -> str:
    """How a process ended, from its exit code: a clause for an error message."""
    if code is None or code >= 0:
        return f"ended with exit status {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = " (the kernel does that to processes when memory is short)" if -code == signal.SIGKILL else ""
    return f"was ended by {name}{hint}"


#: Packages that warnings skip when they look for the line to blame, so that they name a line of the user.
_PASSED_OVER = ("shardtool", "torch", "torchdata", "accelerate", "transformers", "lightning", "pytorch_lightning")


def warn(message: str) -> None:
    """Issues a UserWarning for the user's line: the innermost one outside of this package and of torch's loaders."""
    level = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _PASSED_OVER:
        frame = frame.f_back
        level += 1
    warnings.warn(message, stacklevel=level + 1)
