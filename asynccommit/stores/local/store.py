"""The local filesystem, and whatever the system mounts into it."""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

from asynccommit.errors import StoreError
from asynccommit.stores.base import Info, Move, Page, Renamed, Traits
from asynccommit.stores.grant import Grant, granted
from asynccommit.stores.local import files, moves, probes
from asynccommit.stores.local.lanes import Lanes
from asynccommit.stores.local.pins import LocalPins, Reach, can_pin, path_from, pins_of
from asynccommit.stores.modes import modes_of
from asynccommit.stores.urls import Address

T = TypeVar("T")
_Names = list[str]  # in the class, the name "list" is the method

_WRITES = frozenset({"put", "delete", "delete_tree", "copy", "mkdir", "mkdir_new"})
_LISTINGS = 8  # long listings under way whose names are kept
_LONGEST = os.pathconf("/", "PC_PATH_MAX") - 1  # bytes; the system counts the NUL at the end
_TOGETHER = 16
_WHILE = 0.05  # seconds from which on requests are not made together any more


class LocalStore:
    """Files of the local filesystem, for one event loop.

    What is quick (rename, delete, head, list, mkdir) is gathered, see ``Lanes``; what reads or
    writes data, and ``delete_tree``, has threads of its own, so that it delays no rename.

    Links are never followed at the end of a path, except by ``list`` and ``mkdir``, for which a
    link to a directory is a directory: so a table may be a link, and ``walk`` stays inside.

    An etag is made of inode, time of change in nanoseconds, and size. ``rename`` without
    replacing is one atomic request on Linux; elsewhere, and on network filesystems that lack it,
    so for files only. A listing of more than ``files.PAGE`` names is read at once and shown in
    pages.

    The system has no rename that depends on an etag: the etag is checked just before, in the same
    thread. It keeps no tokens; they are passed over.

    A caller that is cancelled returns once the call that it had begun is over.
    """

    traits = Traits(
        "local filesystem",
        file_etags=True,
        conditional_rename=False,
        bulk_rename=_TOGETHER,
        bulk_list=_TOGETHER,
        links=True,
        probes=True,
        handles=True,
        pins=can_pin(),
        durable=False,
        tagged_get=True,
        checksums=True,
        longest_path=_LONGEST,
        workers=128,
    )

    def __init__(
        self, address: Address | None = None, options: Mapping[str, Any] | None = None
    ) -> None:
        del address  # one disk
        self._modes = modes_of(options or {})
        self.traits = replace(self.traits, modes=self._modes, user=os.geteuid())
        self._quick = Lanes("asynccommit-quick")
        self._slow = Lanes("asynccommit-slow", gather=False)
        self._names: OrderedDict[str, _Names] = OrderedDict()

    def __repr__(self) -> str:
        return "LocalStore()"

    async def head(self, path: str) -> Info:
        return await _ask(self._quick, "head", files.head, path)

    async def list(self, path: str, token: str | None = None) -> Page:
        known = None if token is None else self._names.get(path)
        page, names = await _ask(self._quick, "list", files.page, path, known, token)
        if page.token is None:
            self._names.pop(path, None)
        else:
            self._keep(path, names)
        return page

    async def list_many(self, paths: Sequence[str]) -> Sequence[Page | None]:
        call = self._quick.submit(_list_many, granted(), paths)
        return await _answer(self._quick, "list", call, paths[0])

    async def get(self, path: str, limit: int) -> bytes:
        return await _ask(self._quick, "get", files.get, path, limit)

    async def get_tagged(self, path: str, limit: int) -> tuple[bytes, str | None]:
        return await _ask(self._quick, "get", files.get_tagged, path, limit)

    async def put(
        self, path: str, data: bytes, *, overwrite: bool = True, token: str | None = None
    ) -> Info:
        return await _ask(self._slow, "put", files.put, path, data, overwrite, self._modes.file)

    async def delete(self, path: str) -> None:
        await _ask(self._quick, "delete", files.delete, path)

    async def delete_tree(self, path: str) -> None:
        await _ask(self._slow, "delete_tree", files.delete_tree, path)

    async def copy(self, source: str, dest: str, *, overwrite: bool = False) -> None:
        await _ask(self._slow, "copy", files.copy, source, dest, overwrite, self._modes.file)

    async def pin(self, places: Sequence[str], roots: Sequence[str] = ()) -> LocalPins:
        call = self._quick.submit(LocalPins, places, roots)
        return await _answer(self._quick, "pin", call, places[0])

    async def rename(
        self,
        source: str,
        dest: str,
        *,
        replace: bool = False,
        etag: str | None = None,
        token: str | None = None,
    ) -> None:
        grant = granted()
        call = self._quick.submit(_rename, grant, source, dest, replace, etag)
        await _answer(self._quick, "rename", call, source)

    async def rename_many(self, pairs: Sequence[Move]) -> Renamed:
        call = self._quick.submit(_rename_many, granted(), pairs)
        return await _answer(self._quick, "rename_many", call, pairs[0][0])

    async def probe(self, path: str, place: str) -> None:
        await _ask(self._quick, "rename", probes.probe, path, place)

    async def mkdir(self, path: str, *, private: bool = False) -> None:
        make = files.mkdir_private if private else files.mkdir
        await _ask(self._quick, "mkdir", make, path, self._modes.directory)

    async def mkdir_new(self, path: str, *, token: str | None = None) -> None:
        await _ask(self._quick, "mkdir_new", files.mkdir_new, path, self._modes.directory)

    async def sync(self, path: str) -> None:
        await _ask(self._slow, "sync", files.sync, path)

    async def aclose(self) -> None:
        """Wait for the calls under way and end the threads."""
        await self._quick.aclose()
        await self._slow.aclose()

    def _keep(self, path: str, names: _Names) -> None:
        """Keep the names for the next page, which reads them again if missing."""
        self._names[path] = names
        self._names.move_to_end(path)
        if len(self._names) > _LISTINGS:
            self._names.popitem(last=False)


async def _ask(lanes: Lanes, op: str, function: Callable[..., T], path: str, *args: Any) -> T:
    """Await one call, and translate errors of the system."""
    grant = granted()
    if grant is None:
        call = lanes.submit(function, path, *args)
    else:
        call = lanes.submit(_under, grant, op, function, path, *args)
    return await _answer(lanes, op, call, path)


async def _answer(lanes: Lanes, op: str, call: asyncio.Future[T], path: str) -> T:
    try:
        return await call
    except asyncio.CancelledError:
        await lanes.settle(call)
        raise
    except (OSError, ValueError) as error:
        raise files.translate(op, path, error) from error


def _under(grant: Grant, op: str, function: Callable[..., Any], path: str, *args: Any) -> Any:
    """Run one call with its grant and the paths from it, in a thread."""
    pins = pins_of(grant)
    check = grant.check if op in _WRITES else None
    if op == "delete_tree":
        args, check = (check,), None
    if pins is None:
        if check is not None:
            check()
        return function(path, *args)
    with Reach(pins, check) as reach:
        answer = _reached(reach, op, function, path, *args)
    if op in ("delete", "delete_tree"):
        pins.forget(path)
    if op == "mkdir":
        pins.came(path)
    return answer


def _reached(reach: Reach, op: str, function: Callable[..., Any], path: str, *args: Any) -> Any:
    """Run one call, with paths that follow no link below a root."""
    try:
        if op == "list":
            return function(path, *args, reach.inside(path))
        if op in ("mkdir", "mkdir_new"):
            reach.require_same(path)
            reach.check()
            return function(path, *args, reach)
        here, name = reach.at(path)
        real = path_from(here, name)
        if op in ("copy", "rename"):  # a probe has its second path there as well
            args = (path_from(*reach.at(args[0], keep=here)), *args[1:])
        reach.check()
        answer = function(real, *args)
    except StoreError as error:
        raise type(error)(error.op, path, reach.shown(error.detail)) from error
    except OSError as error:
        if error.filename2 is not None:
            error.filename2 = reach.shown(os.fsdecode(error.filename2))
        raise
    return answer._replace(path=path) if isinstance(answer, Info) else answer


def _rename(grant: Grant | None, source: str, dest: str, replace: bool, etag: str | None) -> None:
    if grant is None:
        moves.rename(source, dest, replace, None, etag)
        return
    pins = pins_of(grant)
    with Reach(pins, grant.check, shared=True) as reach:
        moves.rename(source, dest, replace, reach, etag)
    if pins is not None:
        pins.forget(source)
        pins.went(source)
        pins.came(dest)


def _list_many(grant: Grant | None, paths: Sequence[str]) -> Sequence[Page | None]:
    """List directories in a thread, up to a page's worth of entries."""
    pins = None if grant is None else pins_of(grant)
    if pins is None:
        return _list_each(paths, files.page)
    with Reach(pins) as reach:
        return _list_each(paths, partial(_reached, reach, "list", files.page))


def _list_each(paths: Sequence[str], listed: Callable[..., Any]) -> Sequence[Page | None]:
    found: list[Page | None] = []
    entries, end = 0, perf_counter() + _WHILE
    for path in paths:
        try:
            page, _ = listed(path, None, None)
        except (StoreError, OSError, ValueError):  # raised when the path is asked for alone
            found.append(None)
            continue
        found.append(None if page.token else page)
        entries += len(page.entries)
        if entries >= files.PAGE or perf_counter() > end:
            break
    return found + [None] * (len(paths) - len(found))


def _rename_many(grant: Grant | None, pairs: Sequence[Move]) -> Renamed:
    if grant is None:
        return _rename_each(pairs, None)
    pins = pins_of(grant)
    with Reach(pins, grant.check, shared=True) as reach:
        done, problem = _rename_each(pairs, reach)
    if problem is not None and pins is not None:  # where nothing was found, look anew
        pins.forget()
    return done, problem


def _rename_each(pairs: Sequence[Move], reach: Reach | None) -> Renamed:
    end = perf_counter() + _WHILE
    for done, (source, dest, etag) in enumerate(pairs):
        if done and perf_counter() > end:  # none of these renames is quick: they go one by one
            return done, None
        try:
            moves.rename(source, dest, False, reach, etag)
        except StoreError as error:
            return done, error
        except (OSError, ValueError) as error:
            return done, files.translate("rename", source, error)
        except Exception:
            if done:  # those are counted; what comes next is told so too
                return done, None
            raise
    return len(pairs), None
