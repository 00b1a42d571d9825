"""Pinned directories of local disks, and the way to what is below.

A pinned directory is used itself, whatever now has its name.

A path below a pinned directory is looked up from its descriptor. Once the directory was deleted,
nothing is found, even if another one was created at the same path. So a late call of a resumed
process cannot affect its successor.

Below a root no link is followed: every directory on the way is opened by its name in the one above,
and calls name one entry of an open directory. A root itself may be a link: its user has named it.
"""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from stat import S_ISLNK
from threading import Lock
from time import perf_counter
from types import TracebackType
from typing import Self

from asynccommit.errors import PreconditionError, RejectedError
from asynccommit.stores.grant import Grant
from asynccommit.stores.modes import make_directories, make_directory

AT_CWD = -100
"""The descriptor from which absolute paths are looked up."""
PROC = "/proc/self/fd"
_NO_DIRECTORY = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_NO_DESCRIPTOR = frozenset({errno.EMFILE, errno.ENFILE})
_ROOT = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
_BELOW = _ROOT | os.O_NOFOLLOW
_MOST, _SHARE = 1024, 8
"""Number of directories that are open for calls to come, or that part of the system's limit."""
_WHILE = 0.05  # seconds for which a directory counts as found


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

    def __init__(self, places: Sequence[str], roots: Sequence[str]) -> None:
        self.roots = frozenset("" if root == "/" else root for root in roots)
        self._held = dict[str, int | None]()  # None is a place where no directory is
        self._opened: list[int] = []
        self._lock = Lock()
        self._shared: _Opened | None = None
        self._most = min(_MOST, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // _SHARE)
        for place in sorted(places, key=len):
            self._hold(place)

    async def aclose(self) -> None:
        """See ``Pins.aclose``."""
        self._held = {}
        self.forget()
        while self._opened:
            os.close(self._opened.pop())

    @property
    def held(self) -> dict[str, int | None]:
        """The pinned places with their descriptors."""
        return self._held

    def take(self) -> _Opened:
        """Return directories that other calls have just opened, until ``give``."""
        with self._lock:
            shared = self._shared
            if shared is None or len(shared.fds) > self._most or perf_counter() > shared.until:
                self._retire()
                shared = self._shared = _Opened()
            shared.users += 1
            return shared

    def give(self, opened: _Opened) -> None:
        """Take back what was taken."""
        with self._lock:
            opened.users -= 1
            if opened is not self._shared and not opened.users:
                opened.close()

    def alone(self, opened: _Opened) -> bool:
        """Return whether one call alone uses these directories, now and later."""
        with self._lock:
            if opened is self._shared:
                self._shared = None
            return opened.users <= 1

    def forget(self, path: str | None = None) -> None:
        """Have later calls look up every directory again.

        Args:
            path: only if this is a directory that calls share. One that they have opened below it
                was opened through it.
        """
        with self._lock:
            shared = self._shared
            if path is None or (shared is not None and path in shared.fds):
                self._retire()

    def _retire(self) -> None:
        if self._shared is not None and not self._shared.users:
            self._shared.close()
        self._shared = None

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
        self.went(place)
        fd: int | None = None
        try:
            with Reach(self) as reach:
                above = reach.directory(place)
                fd = os.open(place, _ROOT) if above == AT_CWD else os.dup(above)
            self._opened.append(fd)
        except RejectedError:  # a link; whoever looks at the place tells
            pass
        except OSError as error:
            if error.errno not in _NO_DIRECTORY:
                raise
        self._held = {**self._held, place: fd}


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


class _Opened:
    """Directories that are open, with their paths.

    They count as found for a moment only: another may come to the path of one that was moved.
    """

    __slots__ = ("fds", "until", "users")

    def __init__(self) -> None:
        self.fds: dict[str, int] = {}
        self.until = perf_counter() + _WHILE
        self.users = 0

    def close(self, but: Iterable[int | None] = ()) -> None:
        """Close them, ``but`` those in use."""
        for path, fd in list(self.fds.items()):
            if fd not in but:
                del self.fds[path]
                os.close(fd)


class Reach:
    """The way of one request, or of many in a call, to what it names.

    Directories stay open until its end. So they were opened before the grant is checked, while this
    caller was allowed to go on.

    Args:
        pins: the pinned directories and the roots; ``None`` for neither.
        check: checks the grant.
        shared: use the directories of other calls too.
    """

    def __init__(
        self,
        pins: LocalPins | None,
        check: Callable[[], object] | None = None,
        *,
        shared: bool = False,
    ) -> None:
        self._pins = pins
        self._held = {} if pins is None else pins.held
        self._roots = frozenset[str]() if pins is None else pins.roots
        self._check = check
        self._shared = shared and pins is not None
        self._opened = pins.take() if shared and pins is not None else _Opened()
        self._fds = self._opened.fds

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pins is not None and self._shared:
            self._pins.give(self._opened)
        else:
            self.release()

    def move(self, source: str, dest: str) -> tuple[str, str, int, int]:
        """Return source and destination with descriptors; check the grant last."""
        here = there = AT_CWD
        if self._pins is not None:
            here, source = self.at(source)
            there, dest = self.at(dest, new=True, keep=here)
        self.check()
        return source, dest, here, there

    def check(self) -> None:
        """Check the grant."""
        if self._check is not None:
            self._check()

    def require_same(self, path: str) -> None:
        """Raise ``FileNotFoundError`` if a place has lost its directory."""
        if (fd := self._held.get(path)) is not None:
            _require_same(path, fd)

    def at(self, path: str, *, new: bool = False, keep: int = AT_CWD) -> tuple[int, str]:
        """Return the descriptor of the directory of ``path``, and its name there.

        Outside of every root these are ``AT_CWD`` and the path. ``keep`` is a descriptor in use.

        Raises ``FileNotFoundError`` below a place where no directory is held, and for a place that
        contains another directory by now, unless the path is ``new``, and ``RejectedError`` where a
        link is on the way.
        """
        if path in self._held and not new:
            _require_same(path, self._held[path])
        parent, _, name = path.rpartition("/")
        fd = self._fds.get(parent)
        if fd is None:
            fd = self.directory(parent, keep)
        return (fd, path) if fd == AT_CWD else (fd, name)

    def directory(self, path: str, keep: int = AT_CWD) -> int:
        """Return the descriptor of the directory ``path``.

        It is ``AT_CWD`` for one that is in no root. Raises as ``at`` does.
        """
        fd = self._fds.get(path)
        if fd is not None:
            return fd
        if path in self._held:
            if (held := self._held[path]) is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            return held
        above = self.directory(path.rpartition("/")[0], keep) if path else AT_CWD
        if above == AT_CWD and path not in self._roots:
            return AT_CWD
        return self._enter(path, above, keep)

    def make(self, path: str, mode: int) -> None:
        """Make a missing directory and those above."""
        parent, _, name = path.rpartition("/")
        above = self._made(parent, mode) if path else AT_CWD
        if above == AT_CWD:
            make_directories(path or "/", mode)
            return
        try:
            make_directory(name, mode, above)
        except FileExistsError:  # no link, if it can be entered
            self._enter(path, above, above)

    def _made(self, path: str, mode: int) -> int:
        """Return the descriptor of a directory, which is made if it is missing."""
        with suppress(FileNotFoundError):
            return self.directory(path)
        self.make(path, mode)
        above = self.directory(path.rpartition("/")[0]) if path else AT_CWD
        return self._enter(path, above, above)

    def real(self, path: str) -> str:
        """Return a path for the system that leads to where ``path`` is.

        Raises as ``at`` does.
        """
        return path_from(*self.at(path))

    def inside(self, path: str) -> int:
        """Return ``directory`` for listing; for a pinned place, the held one.

        Raises ``PreconditionError`` if it is no directory.
        """
        try:
            fd = self.directory(path)
        except NotADirectoryError as error:
            raise PreconditionError("list", path, "not a directory") from error
        if fd != AT_CWD and not os.fstat(fd).st_nlink:
            # The C library shows one that was deleted as empty.
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return fd

    def shown(self, text: str) -> str:
        """Return ``text`` with the system's paths replaced by the caller's."""
        for place, fd in (*self._fds.items(), *self._held.items()):
            text = text.replace(f"{PROC}/{fd}/", f"{place}/")
        return text

    def _enter(self, path: str, above: int, keep: int) -> int:
        """Open a directory, and keep it.

        Raises ``RejectedError`` for a link that is no root.
        """
        if above == AT_CWD:
            return self._kept(path, self._open(path or "/", _ROOT, None, keep))
        name, flags = path.rpartition("/")[2], _ROOT if path in self._roots else _BELOW
        try:
            return self._kept(path, self._open(name, flags, above, keep))
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP) and _is_link(name, above):
                raise _link(path) from error
            error.filename = path
            raise

    def _kept(self, path: str, fd: int) -> int:
        """Keep a directory open; if another call has just opened it, use that."""
        there = self._fds.setdefault(path, fd)
        if there != fd:
            os.close(fd)
        return there

    def _open(self, name: str, flags: int, above: int | None, keep: int) -> int:
        try:
            return os.open(name, flags, dir_fd=above)
        except OSError as error:
            if error.errno not in _NO_DESCRIPTOR:
                raise
        self.release((keep, above))
        return os.open(name, flags, dir_fd=above)

    def release(self, but: Iterable[int | None] = ()) -> None:
        """Close the directories that were opened on the way, ``but`` those in use."""
        if self._pins is None or self._pins.alone(self._opened):
            self._opened.close(but)


def _is_link(name: str, above: int) -> bool:
    with suppress(OSError):
        return S_ISLNK(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode)
    return False


def _link(path: str) -> RejectedError:
    return RejectedError(
        "open",
        path,
        f"{path} is a link: files behind it are not of this job. Remove the link (if its directory "
        "was moved away, put that back) and repeat this",
    )
