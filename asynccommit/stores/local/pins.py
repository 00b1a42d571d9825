"""Pinned directories of the local filesystem.

A pinned directory is used itself, whatever now has its name.

A path below a pinned directory is looked up from its descriptor. Once the directory was deleted,
nothing is found, even if another one was created at the same path. So a late call of a resumed
process cannot affect its successor.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from asynccommit.stores.grant import Grant

AT_CWD = -100
"""The descriptor from which absolute paths are looked up."""
PROC = "/proc/self/fd"
_NO_DIRECTORY = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_PLACE = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC


def can_pin() -> bool:
    """Return whether this system shows descriptors as paths.

    Calls that need whole paths depend on it.
    """
    return os.path.isdir(PROC)


def path_from(fd: int, path: str) -> str:
    """Return a path for calls that take no descriptor."""
    return path if fd == AT_CWD else f"{PROC}/{fd}/{path}"


class LocalPins:
    """The implementation of ``PinningStore.pin``.

    Opened in one thread, used by any, and closed when nothing uses it any more.
    """

    def __init__(self, places: Sequence[str], families: Sequence[str]) -> None:
        self.families = tuple(families)
        # The innermost first; None is a place where no directory is.
        self._held: dict[str, int | None] = dict.fromkeys(sorted(places, key=len, reverse=True))
        self._opened: list[int] = []
        for place in places:
            self._hold(place)

    async def aclose(self) -> None:
        """See ``Pins.aclose``."""
        self._held = {}
        while self._opened:
            os.close(self._opened.pop())

    def spot(self, path: str, *, new: bool = False) -> tuple[int, str]:
        """Return a descriptor, and the path of ``path`` relative to it.

        Raises ``FileNotFoundError`` below a place where no directory is held, and for a place that
        contains another directory by now, unless the path is ``new``.
        """
        for place, fd in self._held.items():
            if not path.startswith(place):
                continue
            rest = path[len(place) :]
            if not rest:
                if not new:
                    _require_same(path, fd)
            elif rest[0] == "/":
                if fd is None:
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
                return fd, rest[1:]
        return AT_CWD, path

    @property
    def places(self) -> tuple[str, ...]:
        """The pinned places, the innermost first."""
        return tuple(self._held)

    @property
    def nearest(self) -> tuple[str, int]:
        """Return the path prefix of the innermost place, and its descriptor."""
        for place, fd in self._held.items():
            return ("\0", AT_CWD) if fd is None else (f"{place}/", fd)
        return "\0", AT_CWD

    def real(self, path: str) -> str:
        """Return a path for the system that leads to where ``path`` is.

        Raises as ``spot`` does.
        """
        return path_from(*self.spot(path))

    def inside(self, path: str) -> str:
        """Return the same for listing; for a pinned place, the held directory."""
        fd = self._held.get(path)
        if fd is None:
            return self.real(path)
        if not os.fstat(fd).st_nlink:  # the C library shows one that was deleted as empty
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return f"{PROC}/{fd}"

    def shown(self, text: str) -> str:
        """Return ``text`` with the system's paths replaced by the caller's."""
        for place, fd in self._held.items():
            text = text.replace(f"{PROC}/{fd}/", f"{place}/")
        return text

    def makes(self, path: str) -> bool:
        """Return whether ``path`` is in a place that was empty when pinned.

        Such a path is made by its name.
        """
        return any(
            fd is None and f"{path}/".startswith(f"{place}/") for place, fd in self._held.items()
        )

    def came(self, path: str) -> None:
        """Hold the formerly empty places at and above ``path``.

        This caller has made their directories.
        """
        for place in [place for place, fd in self._held.items() if fd is None]:
            if path == place or path.startswith(f"{place}/"):
                self._hold(place)

    def went(self, path: str) -> None:
        """Release the place ``path``, as this caller moved its directory away."""
        if path in self._held:
            self._held = {place: fd for place, fd in self._held.items() if place != path}

    def _hold(self, place: str) -> None:
        try:
            fd = os.open(place, _PLACE)
        except OSError as error:
            if error.errno not in _NO_DIRECTORY:
                raise
            return
        self._held[place] = fd
        self._opened.append(fd)


def _require_same(place: str, fd: int | None) -> None:
    """Raise ``FileNotFoundError`` if the held directory left its place."""
    if fd is not None:
        here, held = os.stat(place), os.fstat(fd)
        if (here.st_dev, here.st_ino) == (held.st_dev, held.st_ino):
            return
    raise FileNotFoundError(errno.ENOENT, "its directory is gone", place)


def pins_of(grant: Grant) -> LocalPins | None:
    """Return what a grant holds of this kind of store."""
    return grant.pins if isinstance(grant.pins, LocalPins) else None


class Reach:
    """A lookup of files to rename, from pinned descriptors if there are any.

    Entries directly in a family are opened before the grant is checked, so that they were opened
    while this caller was allowed to go on.

    Args:
        pins: the pinned directories; ``None`` for no pins.
        check: checks the grant.
    """

    def __init__(self, pins: LocalPins | None, check: Callable[[], object] | None) -> None:
        self._pins = pins
        self._check = check
        self._opened: dict[str, int] = {}
        if pins is not None:
            self._places, (self._near, self._fd) = pins.places, pins.nearest

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        while self._opened:
            os.close(self._opened.popitem()[1])

    def move(self, source: str, dest: str) -> tuple[str, str, int, int]:
        """Return source and destination with descriptors; check the grant last."""
        here = there = AT_CWD
        if self._pins is not None:
            # Nearly every file comes from below the innermost place and goes to below none.
            if source.startswith(self._near):
                here, source = self._fd, source[len(self._near) :]
            else:
                here, source = self._source(self._pins, source)
            if dest.startswith(self._places):
                there, dest = self._pins.spot(dest, new=True)
        if self._check is not None:
            self._check()
        return source, dest, here, there

    def _source(self, pins: LocalPins, path: str) -> tuple[int, str]:
        for family in pins.families:
            name, slash, rest = path[len(family) + 1 :].partition("/")
            if slash and path.startswith(f"{family}/"):
                member = f"{family}/{name}"
                if member not in self._opened:
                    self._opened[member] = os.open(member, _PLACE)
                return self._opened[member], rest
        return pins.spot(path)
