"""Keep the names of a bucket sorted, only while somebody lists them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

_LAST = "\U0010ffff"
_LONGER = 1025  # longer than any valid name
_FEW = 200  # up to one new name in so many is inserted; more are sorted in


class SortedNames:
    """The keys of a dictionary in code point order, which is that of UTF-8.

    Removed names stay in the list until they are many: removing one moves all names after it.

    Args:
        known: dictionary; code that changes its keys must call ``added``, ``removed`` or ``reset``.
    """

    __slots__ = ("_fresh", "_gone", "_known", "_names")

    def __init__(self, names: Mapping[str, object]) -> None:
        self._known = names
        self._names: list[str] | None = None
        self._fresh: list[str] = []
        self._gone = 0

    def added(self, name: str) -> None:
        """Record a new key."""
        if self._names is not None:
            self._fresh.append(name)

    def removed(self) -> None:
        """Record a removed key."""
        self._gone += 1

    def reset(self) -> None:
        """Record changes of many keys."""
        self._names = None

    def in_order(self) -> list[str]:
        """Return the keys in order, with some removed ones; must not be changed."""
        names = self._names
        if names is None:
            names = self._names = sorted(self._known)
            self._fresh, self._gone = [], 0
            return names
        if self._fresh:
            self._take_in(names)
        if self._gone * 4 > len(names):
            names = self._names = [name for name in names if name in self._known]
            self._gone = 0
        return names

    def below(self, prefix: str) -> list[str]:
        """Return the keys that start with ``prefix``, in order."""
        names = self.in_order()
        end = bisect_left(names, behind(prefix)) if prefix else len(names)
        keys = self._known
        return [name for name in names[bisect_left(names, prefix) : end] if name in keys]

    def any_below(self, prefix: str) -> bool:
        """Return whether a key starts with ``prefix`` and is longer."""
        names, keys = self.in_order(), self._known
        for name in names[bisect_left(names, prefix) : bisect_left(names, behind(prefix))]:
            if name != prefix and name in keys:
                return True
        return False

    def _take_in(self, names: list[str]) -> None:
        many = len(self._fresh) * _FEW > len(names)
        missing = []
        for name in set(self._fresh):
            place = bisect_left(names, name)
            if place == len(names) or names[place] != name:
                missing.append(name)
                if not many:
                    names.insert(place, name)
        if many:
            names += missing
            names.sort()
        self._fresh = []


def behind(prefix: str) -> str:
    """Return the first text after all names that start with ``prefix``."""
    kept = prefix.rstrip(_LAST)
    if not kept:
        return _LAST * _LONGER
    return kept[:-1] + chr(ord(kept[-1]) + 1)
