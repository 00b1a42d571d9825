"""Translate errors of hdfs-native to errors of this package.

The library raises ``FileNotFoundError``, ``FileExistsError`` and ``OSError``. Everything else is a
``RuntimeError``: its text holds the class of the Java exception and its message, with the stack of
the NameNode.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from asynccommit.errors import (
    DeniedError,
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    RejectedError,
    StoreError,
    ThrottledError,
    UnavailableError,
)
from asynccommit.redact import redact, short
from asynccommit.stores.base import QuotaUse

_REMOTE = re.compile(r'(Fatal)?RPCError\("([\w.$]+)", "(.*)"\)\Z', re.DOTALL)
_OTHER = re.compile(r'(\w+)(?:\("?(.*?)"?\))?\Z', re.DOTALL)
_STACK = re.compile(r"\\n\\tat |\n\tat |\n")
_ROOM = 300  # characters of a message

_FAILOVER = 1.0  # seconds until a NameNode may be active

_NO_DIRECTORY = "(is not a directory)"
_MAKES_DIRECTORIES = frozenset({"mkdir", "mkdir_new"})

_RAISE = "raise it with hdfs dfsadmin"
_BY_JVM = "commit in a Spark session with asynccommit.store=jvm"
# The class of the exception without its packages -> our error, and the remedy.
_KNOWN: dict[str, tuple[type[StoreError], str]] = {
    "AccessControlException": (DeniedError, "ask the owner for the permission or an ACL"),
    "SnapshotAccessControlException": (DeniedError, "write to the directory, not to its snapshot"),
    "AuthorizationException": (DeniedError, "the cluster does not accept this user"),
    "SaslException": (DeniedError, "authenticate again, for example with kinit"),
    "InvalidToken": (DeniedError, "the delegation token has expired: get a new one"),
    "PathIsNotEmptyDirectoryException": (ExistsError, ""),
    "NSQuotaExceededException": (
        RejectedError,
        f"the quota of names is used up: delete files, or {_RAISE} -setQuota, and resume",
    ),
    "DSQuotaExceededException": (
        RejectedError,
        f"the quota of space is used up: delete files, or {_RAISE} -setSpaceQuota, and resume",
    ),
    "QuotaByStorageTypeExceededException": (
        RejectedError,
        "the quota of a storage type is used up: raise it with hdfs dfsadmin -setSpaceQuota",
    ),
    "FSLimitException$PathComponentTooLongException": (RejectedError, "shorten the name"),
    "FSLimitException$MaxDirectoryItemsExceededException": (
        RejectedError,
        "the directory is full: dfs.namenode.fs-limits.max-directory-items",
    ),
    "InvalidPathException": (
        RejectedError,
        "HDFS allows no ':' in a name, and no name '.' or '..'",
    ),
    "SnapshotException": (
        RejectedError,
        "delete the snapshots of the directory first (hdfs dfs -deleteSnapshot)",
    ),
    "UnresolvedPathException": (RejectedError, "give the path without a symbolic link"),
    "SafeModeException": (UnavailableError, "wait, or run hdfs dfsadmin -safemode leave"),
    "ServerTooBusyException": (ThrottledError, ""),
}
# Any NameNode that is not the active one may say this, after another one did what it was asked for.
_ELSEWHERE = frozenset({"StandbyException", "ObserverRetryOnActiveException"})
_AUTHENTICATION = frozenset({"GSSAPIError", "SASLError", "NoSASLMechanism"})
# A plain IOException: a part of its message -> our error for a rename that may replace.
_KINDS = ("must both be directories", "must both be files")
_RENAMES = {
    "directory is not empty": ExistsError,
    "is a directory or file under source": RejectedError,
}


class HdfsRequest(NamedTuple):
    """The facts about a request that decide the meaning of its error.

    Attributes:
        op: the store method.
        path: the path of the call.
        writes: whether it has a visible effect.
        new: whether it requires an empty destination.
        group: whether there are several NameNodes, one of which will become active.
    """

    op: str
    path: str
    writes: bool = False
    new: bool = False
    group: bool = False


def translate(request: HdfsRequest, error: BaseException) -> StoreError:
    """Return the error of this package for an error of hdfs-native."""
    text = clean(str(error))
    if isinstance(error, FileNotFoundError):
        missing = PreconditionError if "is not a file" in text else NotFoundError
        return missing(request.op, request.path, text)
    if isinstance(error, FileExistsError):
        made = request.op in _MAKES_DIRECTORIES and not request.new
        there = PreconditionError if made else ExistsError
        return there(request.op, request.path, text)
    if isinstance(error, IsADirectoryError):
        return PreconditionError(request.op, request.path, text)
    if isinstance(error, NotImplementedError):
        return RejectedError(request.op, request.path, f"hdfs-native cannot do this: {text}")
    if isinstance(error, TimeoutError):
        return _unanswered(request, "no response in time: is the NameNode alive?")
    if isinstance(error, RuntimeError):
        return _runtime(request, str(error))
    # A lost connection, or a panic of the library. It may have sent the request twice.
    return _unanswered(request, text)


def message_of(error: BaseException) -> str:
    """Return the message of an error without the stack of the NameNode."""
    text = str(error)
    if found := _REMOTE.match(text):
        return f"{found[2].rpartition('.')[2]}: {clean(found[3])}"
    other = _OTHER.match(text) if isinstance(error, RuntimeError) else None
    return clean(other[2] if other and other[2] else text)


def _runtime(request: HdfsRequest, text: str) -> StoreError:
    found = _REMOTE.match(text)
    if found is None:
        other = _OTHER.match(text)
        name, message = (other[1], clean(other[2] or "")) if other else ("", clean(text))
        if name in _AUTHENTICATION:
            detail = f"authentication failed ({name}{message and ': '}{message}): run kinit, give "
            detail += f"kerberos_keytab, or {_BY_JVM}"
            return DeniedError(request.op, request.path, detail)
        if "encryption zone" in text:
            return RejectedError(request.op, request.path, f"{message}; or {_BY_JVM}")
        return _unanswered(request, f"{name}: {message}" if message else name)
    return translate_java(request, found[2], clean(found[3]), fatal=bool(found[1]))


def translate_java(
    request: HdfsRequest, name: str, message: str, *, fatal: bool = False
) -> StoreError:
    """Return the error for an exception of a NameNode, or of Hadoop's client.

    Args:
        request: the request.
        name: the class of the exception.
        message: its message, without stack.
        fatal: whether the connection ended with it.
    """
    java = name.rpartition(".")[2]
    if java == "ParentNotDirectoryException" or message.endswith(_NO_DIRECTORY):
        kind = PreconditionError if request.op in _MAKES_DIRECTORIES else NotFoundError
        return kind(request.op, request.path, message)
    detail = f"{java}: {message}"
    if java in _KNOWN:
        translated, remedy = _KNOWN[java]
        return translated(request.op, request.path, f"{detail}: {remedy}" if remedy else detail)
    if java in _ELSEWHERE:
        return _inactive(request, detail)
    if java == "RetriableException":
        again = ThrottledError if "too busy" in message.lower() else UnavailableError
        return again(request.op, request.path, detail)
    if fatal:
        return _unanswered(request, detail)
    return _by_message(request, message)(request.op, request.path, detail)


def _inactive(request: HdfsRequest, detail: str) -> StoreError:
    """Return the error for the answer of a NameNode that is not active.

    In a group one will be: until then all requests wait, as for a busy service.
    """
    if not request.group:
        return _unanswered(request, f"{detail}: the URL names a NameNode that is not active")
    detail = f"{detail}: no NameNode is active"
    if request.writes:
        return OutcomeUnknownError(request.op, request.path, detail, busy=True)
    return ThrottledError(request.op, request.path, detail, _FAILOVER)


def _by_message(request: HdfsRequest, message: str) -> type[StoreError]:
    """Return the class of the error for a plain IOException."""
    if any(part in message for part in _KINDS):
        return ExistsError if request.new else PreconditionError
    for part, kind in _RENAMES.items():
        if part in message:
            return kind
    if "could only be written to" in message or "NotReplicatedYet" in message:
        return UnavailableError
    return RejectedError


def _unanswered(request: HdfsRequest, detail: str) -> StoreError:
    kind = OutcomeUnknownError if request.writes else UnavailableError
    return kind(request.op, request.path, detail)


def clean(text: str) -> str:
    """Return the first line of a message without escapes and secrets."""
    line = _STACK.split(text, maxsplit=1)[0]
    return short(redact(line.replace('\\"', '"').strip()), _ROOM)


_UNLIMITED = 1 << 62
_ZONE = "encryption zone"


def quota_use(names: int, named: int, space: int, spent: int) -> QuotaUse:
    """Return quotas and their use; no quota is a negative or a huge number."""
    return QuotaUse(_limit(names), named, _limit(space), spent)


def _limit(quota: int) -> int | None:
    return quota if 0 <= quota < _UNLIMITED else None


def about_zone(place: str, error: StoreError) -> StoreError:
    """Return the error for a place to which a rename was refused."""
    if _ZONE in error.detail:
        text = (
            "of another encryption zone than the table: no file can be renamed there. Write it to "
            f"a place in the zone of the table ({error.detail})"
        )
        return RejectedError("rename", place, text)
    return RejectedError("rename", place, error.detail)
