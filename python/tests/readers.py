"""Readers that outlive their loaders: starting one takes most of the time of a short loop."""

import json

from shardtool.bridge.reader_process import ReaderProcess


class Readers:
    """The unused readers, by their open location."""

    def __init__(self):
        self._free = {}
        self._all = []

    def take(self, place):
        free = [reader for reader in self._free.setdefault(place, []) if not reader.is_closed]
        if not free:
            free = [ReaderProcess()]
            self._all += free
        reader, *self._free[place] = free
        return reader

    def give_back(self, place, reader):
        self._free[place].append(reader)

    def close(self):
        for reader in self._all:
            reader.close()


class LentReader:
    """Replaces a `ReaderProcess`: one that may have had loaders of the same location before."""

    def __init__(self, readers):
        self._readers = readers
        self._reader = None
        self._is_given_back = False

    def ask(self, kind, **content):
        if self._reader is None:
            self._place = json.dumps([content["location"], content["seen"]])
            self._reader = self._readers.take(self._place)
        return self._reader.ask(kind, **content)

    @property
    def is_closed(self):
        return self._is_given_back or (self._reader is not None and self._reader.is_closed)

    def close(self):
        if self._reader is not None and not self._is_given_back:
            if self._is_free():
                self._readers.give_back(self._place, self._reader)
            else:
                self._reader.close()
        self._is_given_back = True

    def _is_free(self):
        """Checks that nothing refers to the slots any more: otherwise the next loader would overwrite them."""
        memory = self._reader._memory
        try:
            if memory is not None:
                memory._memory.close()
        except BufferError:
            return False
        self._reader._memory = None
        return True

    def __del__(self):
        self.close()

    def __getattr__(self, name):
        return getattr(self._reader, name)
