"""The names in a bucket in order, kept so only while somebody lists."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

_LAST = "\U0010ffff"
_LONGER = 1025  # characters than any name has
_FEW = 200  # one new name in so many is put in its place; more are sorted in


class SortedNames:
    """The keys of a dictionary in the order of code points, which is that of UTF-8.

    Names that are gone stay in the list until they are many: to take one out moves all behind it.

    Args:
        known: whose keys; whoever changes them says so by ``added``, ``removed`` or ``reset``.
    """

    __slots__ = ("_fresh", "_gone", "_known", "_names")

    def __init__(self, known: Mapping[str, object]) -> None:
        self._known = known
        self._names: list[str] | None = None
        self._fresh: list[str] = []
        self._gone = 0

    def added(self, name: str) -> None:
        """Say that a key is new."""
        if self._names is not None:
            self._fresh.append(name)

    def removed(self) -> None:
        """Say that a key is gone."""
        self._gone += 1

    def reset(self) -> None:
        """Say that many keys changed."""
        self._names = None

    def in_order(self) -> list[str]:
        """Return the keys in order, with some that are gone between them. Not to be changed."""
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
        known = self._known
        return [name for name in names[bisect_left(names, prefix) : end] if name in known]

    def any_below(self, prefix: str) -> bool:
        """Whether a key starts with ``prefix`` and has more."""
        names, known = self.in_order(), self._known
        for name in names[bisect_left(names, prefix) : bisect_left(names, behind(prefix))]:
            if name != prefix and name in known:
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
    """Return the first text that comes behind all names that start with ``prefix``."""
    kept = prefix.rstrip(_LAST)
    if not kept:
        return _LAST * _LONGER
    return kept[:-1] + chr(ord(kept[-1]) + 1)
