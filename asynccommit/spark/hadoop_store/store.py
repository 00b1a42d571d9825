"""Files of a filesystem of Hadoop's, through the driver's JVM."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os.path import commonprefix
from typing import Any

from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    RejectedError,
    StoreError,
)
from asynccommit.runtime.host import Host, this_host
from asynccommit.spark.hadoop_store.calls import FileCalls, JavaCalls
from asynccommit.spark.hadoop_store.errors import translate
from asynccommit.stores.base import Info, Kind, Move, Page, QuotaUse, Renamed, Traits
from asynccommit.stores.filesystem_names import is_temporary, temporary_name
from asynccommit.stores.hdfs.errors import HdfsRequest, about_zone, quota_use

_Infos = list[Info]  # in the class, the name "list" is the method
_Groups = list[tuple[str, str, list[str]]]
_KINDS = {"d": Kind.DIRECTORY, "f": Kind.FILE, "o": Kind.OTHER}
# Filesystems of a cluster, which have no limit on the rate of requests as accounts have.
_CLUSTERS = ("hdfs://", "viewfs://", "webhdfs://", "swebhdfs://", "ofs://", "o3fs://")
# Filesystems of a NameNode; see FileWork.java.
_NAMENODES = ("hdfs://", "webhdfs://", "swebhdfs://")
_LONGEST = 8000  # the NameNode counts characters
_WORKERS = 64
_BATCH = 32  # renames of one thread of the JVM, one after another


@dataclass(frozen=True, slots=True)
class FileFacts:
    """The facts about a filesystem, from class, capabilities and a probe.

    Attributes:
        name: scheme and authority.
        kind: the class.
        atomic: a rename that must not replace is one atomic request.
        etags: it has etags, which a rename preserves.
        survives: a rename preserves the modification time, or the etag.
    """

    name: str
    kind: str
    atomic: bool
    etags: bool
    survives: bool


class HadoopStore:
    """The files of one filesystem, as Hadoop's class in the JVM shows them.

    A rename is one that has options where the filesystem has it (``rename2`` of HDFS), and never
    moves a source into a directory that exists. Elsewhere the destination is looked at first.

    An etag is that of the filesystem, or made of the modification time in milliseconds and the
    length, as in the store of HDFS that needs no JVM: each of them can finish the commits of the
    other. Where a file has a number that renames keep, as on HDFS, the number settles what became
    of a rename that no etag can settle.

    ``put`` and ``copy`` write a temporary file in the same directory, hidden from listings, and
    rename it; ``mkdir_new`` does the same with a directory.

    Args:
        connect: returns the filesystem in the JVM.
        facts: the facts about it.
        host: clock and ids.
    """

    def __init__(
        self, connect: Callable[[], FileCalls], facts: FileFacts, *, host: Host | None = None
    ) -> None:
        self._calls = JavaCalls(connect)
        self._facts = facts
        self._new_id = (host or this_host()).new_id
        hdfs = facts.name.startswith(("hdfs://", "viewfs://"))
        self.traits = Traits(
            "HDFS" if hdfs else f"{facts.name.partition(':')[0]}: through the JVM",
            rename_no_replace=facts.atomic,
            rename_replaces=facts.atomic,
            etag_survives_rename=facts.survives,
            weak_etags=not facts.etags,
            zones=facts.atomic,
            nested_zones=facts.atomic and facts.name.startswith(_NAMENODES),
            bulk_rename=_BATCH,
            conditional_rename=False,
            atomic_put=True,
            longest_path=_LONGEST,
            workers=_WORKERS,
            user="" if facts.name.startswith(_CLUSTERS) else None,
            account=facts.name,
            unlimited=facts.name.startswith(_CLUSTERS),
            costs={"put": 6, "copy": 7, "mkdir_new": 3, "probe": 5},
        )

    def __repr__(self) -> str:
        return f"HadoopStore({self._facts.name}, {self._facts.kind.rpartition('.')[2]})"

    async def head(self, path: str) -> Info:
        return self._info(path, await self._ask(HdfsRequest("head", path)))

    async def list(self, path: str, token: str | None = None) -> Page:
        entries = await self._entries(HdfsRequest("list", path))
        return Page(tuple(info for info in entries if not _is_hidden(info)))

    async def get(self, path: str, limit: int) -> bytes:
        return base64.b64decode(await self._ask(HdfsRequest("get", path), limit))

    async def put(
        self, path: str, data: bytes, *, overwrite: bool = True, token: str | None = None
    ) -> Info:
        request = HdfsRequest("put", path, writes=True, new=not overwrite, group=True)
        text = base64.b64encode(data).decode()
        return self._info(path, await self._ask(request, text, self._beside(path), overwrite))

    async def delete(self, path: str) -> None:
        request = _below_root(HdfsRequest("delete", path, writes=True, group=True))
        try:
            found = await self._ask(request, False)
        except ExistsError:
            await self._clear(path)
            found = await self._ask(request, False)
        if not found:
            await self._refuse_missing(request)

    async def delete_tree(self, path: str) -> None:
        request = _below_root(HdfsRequest("delete_tree", path, writes=True, group=True))
        if not await self._calls.ask(request, "delete", path, True):
            await self._refuse_missing(request)

    async def copy(self, source: str, dest: str, *, overwrite: bool = False) -> None:
        request = HdfsRequest("copy", source, writes=True, new=not overwrite, group=True)
        await self._ask(request, dest, self._beside(dest), overwrite)

    async def rename(
        self,
        source: str,
        dest: str,
        *,
        replace: bool = False,
        etag: str | None = None,
        token: str | None = None,
    ) -> None:
        request = HdfsRequest("rename", source, writes=True, new=not replace, group=True)
        # An etag tells what became of it; without one the JVM looks at the source before.
        await self._ask(request, dest, replace, None if etag else "settle")

    async def rename_many(self, pairs: Sequence[Move]) -> Renamed:
        """See ``BatchStore.rename_many``; etags are not compared.

        Without them a lost answer could not be settled, so each file is looked at before.
        """
        if not all(etag for _, _, etag in pairs):
            return await self._one_by_one(pairs)
        request = HdfsRequest("rename", pairs[0][0], writes=True, new=True, group=True)
        groups = grouped(pairs)
        try:
            done, *failure = await self._calls.ask(request, "rename_many", pairs[0][0], groups)
        except OutcomeUnknownError as unknown:  # the JVM may go on; each is asked for alone
            return 0, unknown
        if not failure:
            return done, None
        return done, translate(request._replace(path=pairs[done][0]), *failure)

    async def probe(self, path: str, place: str) -> None:
        """See ``ProbingStore.probe``; the directory ``path`` stays where it is."""
        request = HdfsRequest("probe", place, writes=True, new=True)
        temp, landed = self._beside(f"{path}/x"), self._beside(f"{place}/x")
        try:
            await self._calls.ask(request, "try_rename", temp, landed)
        except RejectedError as error:
            raise about_zone(place, error) from error

    async def quotas(self, path: str) -> QuotaUse:
        """See ``QuotaStore.quotas``."""
        return quota_use(*await self._ask(HdfsRequest("quotas", path)))

    async def mkdir(self, path: str, *, private: bool = False) -> None:
        await self._ask(HdfsRequest("mkdir", path, writes=True, group=True), private)

    async def mkdir_new(self, path: str, *, token: str | None = None) -> None:
        request = HdfsRequest("mkdir_new", path, writes=True, new=True, group=True)
        if path == "/":
            raise ExistsError("mkdir_new", path, "the root always exists")
        await self._ask(request, self._beside(path))

    async def sync(self, path: str) -> None:
        """Do nothing: ``put`` has asked for ``hsync``, where that is possible."""

    async def aclose(self) -> None:
        """End the threads; the JVM keeps the filesystem."""
        await self._calls.aclose()

    async def _ask(self, request: HdfsRequest, *arguments: object) -> Any:
        return await self._calls.ask(request, request.op, request.path, *arguments)

    async def _entries(self, request: HdfsRequest) -> _Infos:
        base = request.path.rstrip("/")
        found = await self._calls.ask(request, "list", request.path)
        return [self._info(f"{base}/{facts[0]}", facts) for facts in found]

    async def _one_by_one(self, pairs: Sequence[Move]) -> Renamed:
        for done, (source, dest, etag) in enumerate(pairs):
            try:
                await self.rename(source, dest, etag=etag)
            except StoreError as error:
                return done, error
        return len(pairs), None

    async def _clear(self, path: str) -> None:
        """Delete temporary files of a directory that has nothing else."""
        entries = await self._entries(HdfsRequest("list", path))
        if all(map(_is_hidden, entries)):
            for info in entries:
                await self._ask(HdfsRequest("delete", info.path, writes=True), True)

    async def _refuse_missing(self, request: HdfsRequest) -> None:
        """Raise the reason why a delete has found nothing."""
        if await self._is_there(request.path):
            raise RejectedError(request.op, request.path, "the filesystem does not delete it")
        raise NotFoundError(request.op, request.path, "does not exist")

    async def _is_there(self, path: str) -> bool:
        try:
            await self._ask(HdfsRequest("head", path, writes=True))
        except NotFoundError:
            return False
        return True

    def _beside(self, path: str) -> str:
        return f"{path.rpartition('/')[0]}/{temporary_name(self._new_id())}"

    def _info(self, path: str, facts: Sequence[Any]) -> Info:
        _, kind, size, time, etag, owner = facts
        owner = None if self.traits.user is None else owner
        if kind == "d":
            return Info(path, Kind.DIRECTORY, 0, f"{time:x}", time / 1000, owner=owner)
        if etag is None or not self._facts.etags:
            etag = f"{time:x}-{size:x}"
        return Info(path, _KINDS[kind], size, etag, time / 1000, owner=owner)


def grouped(pairs: Sequence[Move]) -> _Groups:
    """Return moves without what their paths have in common.

    Of each group: what its sources begin with, what its destinations begin with, and how both end.
    """
    cut = len(commonprefix([dest for _, dest, _ in pairs]))  # noqa: RUF071  within names, too
    groups: _Groups = []
    last = ""
    for source, dest, _ in pairs:
        end = dest[cut:]
        begin = source[: len(source) - len(end)] if source.endswith(end) else ""
        if begin and begin == last:
            groups[-1][2].append(end)
        elif begin:
            groups.append((begin, dest[:cut], [end]))
        else:
            groups.append((source, dest, [""]))
        last = begin
    return groups


def _is_hidden(info: Info) -> bool:
    return is_temporary(info.path.rpartition("/")[2])


def _below_root(request: HdfsRequest) -> HdfsRequest:
    if request.path == "/":
        raise RejectedError(request.op, request.path, "the root cannot be deleted")
    return request
