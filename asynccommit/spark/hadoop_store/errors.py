"""Translate exceptions of Hadoop's filesystems to errors of this package."""

from __future__ import annotations

from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    RejectedError,
    StoreError,
    UnavailableError,
)
from asynccommit.stores.hdfs.errors import HdfsRequest, clean, translate_java

_MAKES_DIRECTORIES = frozenset({"mkdir", "mkdir_new"})
# The class of the exception without its packages -> our error.
_KNOWN: dict[str, type[StoreError]] = {
    "FileNotFoundException": NotFoundError,
    "NoSuchFileException": NotFoundError,
    "PathNotFoundException": NotFoundError,
    "PathIsDirectoryException": PreconditionError,
    "PathIsNotDirectoryException": PreconditionError,
    "NotInMountpointException": RejectedError,
    "UnsupportedOperationException": RejectedError,
    "IllegalArgumentException": RejectedError,
    "InvalidPathException": RejectedError,
    "URISyntaxException": RejectedError,
}
# After these nobody knows whether the request was executed.
_BROKEN = (
    "ClosedByInterruptException",
    "ClosedChannelException",
    "ConnectException",
    "ConnectTimeoutException",
    "EOFException",
    "InterruptedIOException",
    "NoRouteToHostException",
    "SSLException",
    "SocketException",
    "SocketTimeoutException",
    "UnknownHostException",
    "TimeoutException",
)
_CLOSED = "Filesystem closed"
_NOT_EMPTY = ("is non empty", "not empty", "non-empty")
# A rename between two filesystems behind one view.
_MOUNTS = "across mount points"


def translate(request: HdfsRequest, name: str, message: str) -> StoreError:
    """Return the error of this package for an exception of a filesystem.

    Args:
        request: the request.
        name: the class of the exception.
        message: its message.
    """
    java, text = name.rpartition(".")[2], clean(message)
    if java == "FileAlreadyExistsException":
        made = request.op in _MAKES_DIRECTORIES and not request.new
        there = PreconditionError if made else ExistsError
        return there(request.op, request.path, text)
    if java == "FileNotFoundException" and "is not a file" in text:
        return PreconditionError(request.op, request.path, text)
    if java in _KNOWN:
        return _KNOWN[java](request.op, request.path, f"{java}: {text}")
    if java in _BROKEN or _CLOSED in text or name.endswith("Error"):
        return unanswered(request, f"{java}: {text}")
    if _MOUNTS in text.lower():
        return RejectedError(request.op, request.path, f"{java}: {text}")
    if any(part in text for part in _NOT_EMPTY):
        return ExistsError(request.op, request.path, f"{java}: {text}")
    return translate_java(request, name, text)


def unanswered(request: HdfsRequest, detail: str) -> StoreError:
    """Return the error for a request whose answer is missing."""
    kind = OutcomeUnknownError if request.writes else UnavailableError
    return kind(request.op, request.path, detail)
