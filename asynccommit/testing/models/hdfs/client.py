"""A client of the modelled NameNode, whose requests meet faults, and the dialect of their rules.

The store over it is the one that users have. The codes of rules are the Java classes of a
NameNode's exceptions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from asynccommit.errors import RejectedError, StoreError
from asynccommit.stores.base import Move, Renamed
from asynccommit.stores.hdfs.errors import HdfsRequest, translate, translate_java
from asynccommit.testing.models.adls.refusals import Refusal
from asynccommit.testing.models.crashes import WRITES, MortalSender, Process
from asynccommit.testing.models.fault_rules import Dialect
from asynccommit.testing.models.hdfs.namenode import HdfsNameNode, HdfsWriteOptions
from asynccommit.testing.models.in_process import LostError, Sender, SimRequest

OPS = ("create", "mkdir", "rename", "delete", "head", "read", "list")
"""The names of operations in rules, besides ``*``."""

CODES: Mapping[str, tuple[int, str]] = MappingProxyType(
    {
        "AccessControlException": (403, "Permission denied: user=simulated, access=WRITE"),
        "DSQuotaExceededException": (403, "The DiskSpace quota is exceeded"),
        "NSQuotaExceededException": (403, "The NameSpace quota is exceeded"),
        "SafeModeException": (503, "Name node is in safe mode."),
        "ServerTooBusyException": (503, "Server is too busy to receive call"),
        "SnapshotException": (403, "The directory cannot be deleted since it is snapshottable"),
        "StandbyException": (500, "Operation category is not supported in state standby"),
    }
)
"""The exceptions that rules may use, with a status for HTTP and a message."""


def _refuse(
    code: str, message: str | None = None, headers: Mapping[str, str] | None = None
) -> Refusal:
    status, words = CODES.get(code, (500, code))
    return Refusal(status, code, words if message is None else message, headers)


HDFS = Dialect(
    name="hdfs",
    ops=OPS,
    codes=CODES,
    busy="ServerTooBusyException",
    timed_out="StandbyException",
    refuse=_refuse,
)


T = TypeVar("T")

_READS = {"head": "head", "get": "read", "list": "list", "probe": "head"}
# A request of another method that looks first; see ``HdfsRequest.writes``.
_ASIDE = {"put": "create", "copy": "create", "mkdir_new": "mkdir"}
_CHANGES = {
    **_ASIDE,
    "delete": "delete",
    "delete_tree": "delete",
    "mkdir": "mkdir",
    "rename": "rename",
}
_MOVES = ("put", "copy", "mkdir_new")
"""Methods whose visible request is a rename."""


class SimHdfsClient(Sender):
    """The requests of one process to a NameNode of the model.

    Args:
        namenode: the NameNode.
        settings: see ``Sender``.
        user: the user of the process.
    """

    options = HdfsWriteOptions

    def __init__(
        self, namenode: HdfsNameNode, settings: Mapping[str, Any], user: str = "alice"
    ) -> None:
        super().__init__(settings, _rejected)
        self._namenode = namenode
        self._user = user

    async def ask(self, request: HdfsRequest, call: Callable[[Any], T]) -> T:
        """See ``HdfsClient.ask``."""
        aside = not request.writes and request.op in _ASIDE
        op = _CHANGES[request.op] if request.writes or aside else _READS.get(request.op, "head")
        if request.writes and request.op in _MOVES:
            op = "rename"
        asked = SimRequest(request.op, request.path, request.writes, request.new, aside)

        def apply() -> tuple[T | None, Exception | None]:
            self._namenode.user = self._user
            try:
                return call(self._namenode), None
            except Exception as error:
                return None, error

        answer, error = await self._ask(asked, op, request.path, apply)
        if isinstance(error, StoreError):
            raise error
        if error is not None:
            raise translate(request, error) from error
        return answer  # type: ignore[return-value]  # without an error there is an answer

    async def work(self, request: HdfsRequest, call: Callable[[Any], T]) -> T:
        """See ``HdfsClient.work``."""
        return await self.ask(request, call)

    async def rename_many(self, pairs: Sequence[Move]) -> Renamed:
        """See ``HdfsClient.rename_many``; a process can die between two of them."""
        for done, (source, dest, _) in enumerate(pairs):
            request = HdfsRequest("rename", source, writes=True, new=True)
            try:
                await self.ask(request, _renaming(source, dest))
            except StoreError as error:
                return done, error
        return len(pairs), None

    def close(self, client: Any, writer: Any, path: str, size: int) -> None:
        """See ``HdfsClient.close``."""
        writer.close()

    def translated(self, asked: SimRequest, answer: Refusal | LostError) -> StoreError:
        """Return the error for a response, such as a NameNode's exception."""
        if isinstance(answer, Refusal) and answer.code in CODES:
            request = HdfsRequest(asked.method, asked.path, asked.writes, asked.new)
            return translate_java(request, answer.code, answer.message)
        return super().translated(asked, answer)


class MortalHdfsClient(MortalSender, SimHdfsClient):
    """The same for a process that can die at each request.

    Args:
        namenode: the NameNode.
        settings: see ``Sender``.
        process: process that sends the requests.
        user: its user.
    """

    _writes = WRITES

    def __init__(
        self,
        namenode: HdfsNameNode,
        settings: Mapping[str, Any],
        process: Process,
        user: str = "alice",
    ) -> None:
        super().__init__(namenode, settings, user)
        self._process = process


def _renaming(source: str, dest: str) -> Callable[[HdfsNameNode], None]:
    return lambda namenode: namenode.rename(source, dest, False)


def _rejected(_asked: SimRequest, _answer: Refusal) -> type[StoreError]:
    """Return the error for a refusal that is no rule of the NameNode."""
    return RejectedError
