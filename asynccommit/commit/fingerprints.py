"""Sets of 64-bit fingerprints in flat memory.

A fingerprint is Python's hash of a path or a tuple, so equal things have equal fingerprints and
different ones almost never: a match must be checked exactly, a mismatch needs no check.
Fingerprints are kept in partitions, which are written to an unnamed temporary file when they become
many. A partition is made with its first fingerprint: most bags are small.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable
from typing import IO, Self

from asynccommit.commit.spill import discard, spill_error, unnamed_file

_MASK = 0xFFFF_FFFF_FFFF_FFFF
IN_MEMORY = 1 << 21
"""Fingerprints held before they go to a file: 16 MB."""


class Fingerprints:
    """A bag of fingerprints, compared partition by partition.

    Args:
        directory: directory of the file, if one is needed; ``None`` for the system's temporary
            directory.
        in_memory: number of fingerprints to hold before a file is used.
    """

    def __init__(self, directory: str | None = None, in_memory: int = IN_MEMORY) -> None:
        self.count = 0
        self._directory = directory
        self._limit = in_memory
        self._held = 0
        self._parts: defaultdict[int, array[int]] = defaultdict(_empty)
        self._places: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        self._file: IO[bytes] | None = None

    def add(self, things: Iterable[object]) -> None:
        """Add the fingerprints of hashable things."""
        parts = self._parts
        added = 0
        for thing in things:
            print_ = hash(thing) & _MASK
            parts[print_ & 255].append(print_)
            added += 1
        self.count += added
        self._held += added
        if self._held >= self._limit:
            self._flush()

    def repeated(self) -> set[int]:
        """Return the fingerprints that were added more than once."""
        found: set[int] = set()
        for part in map(self._partition, self._indexes()):
            if len(set(part)) != len(part):
                found |= _more_than_once(part)
        return found

    def common(self, other: Fingerprints) -> set[int]:
        """Return the fingerprints that are in both."""
        found: set[int] = set()
        for index in self._indexes() & other._indexes():
            found |= set(self._partition(index)).intersection(other._partition(index))
        return found

    def missing(self, other: Fingerprints) -> set[int]:
        """Return the fingerprints of this bag that are not in the other."""
        found: set[int] = set()
        for index in self._indexes():
            found |= set(self._partition(index)).difference(other._partition(index))
        return found

    def _indexes(self) -> set[int]:
        """Return the partitions that hold anything."""
        return self._parts.keys() | self._places.keys()

    def _partition(self, index: int) -> array[int]:
        held = self._parts.get(index, _empty())
        if self._file is None:
            return held
        whole = _empty()
        for position, count in self._places.get(index, ()):
            self._file.seek(position)
            whole.frombytes(self._file.read(count * 8))
        whole.extend(held)
        return whole

    def _flush(self) -> None:
        try:
            self._write()
        except OSError as error:
            raise spill_error(self._directory, error) from error

    def _write(self) -> None:
        if self._file is None:
            self._file = unnamed_file(self._directory)
        position = self._file.seek(0, 2)
        for index, part in self._parts.items():
            self._places[index].append((position, len(part)))
            position += self._file.write(part.tobytes())
        self._parts.clear()
        self._held = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release all memory and the file."""
        self._parts.clear()
        self._places.clear()
        file, self._file = self._file, None
        discard(file)


def fingerprint(thing: object) -> int:
    """Return the fingerprint of one hashable thing."""
    return hash(thing) & _MASK


def _empty() -> array[int]:
    return array("Q")


def _more_than_once(values: Iterable[int]) -> set[int]:
    once: set[int] = set()
    more: set[int] = set()
    for value in values:
        (more if value in once else once).add(value)
    return more
