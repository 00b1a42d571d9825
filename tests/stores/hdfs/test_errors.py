"""Each error of hdfs-native, and the error that a caller gets."""

from __future__ import annotations

import pytest

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
from asynccommit.stores.hdfs.errors import HdfsRequest, message_of, translate

RENAME = HdfsRequest("rename", "/a", writes=True, new=True)
REPLACE = HdfsRequest("rename", "/a", writes=True)
HEAD = HdfsRequest("head", "/a")
STACK = "\\n\\tat org.apache.hadoop.hdfs.server.namenode.FSNamesystem.x(FSNamesystem.java:1)"


def remote(java: str, message: str, kind: str = "RPCError") -> RuntimeError:
    """Return the error of the library for an exception of a NameNode."""
    return RuntimeError(f'{kind}("{java}", "{message}{STACK}")')


ZONE = 'OperationFailed("File is in an HDFS encryption zone but no KMS provider is configured")'
KNOWN: list[tuple[HdfsRequest, BaseException, type[StoreError], str]] = [
    (HEAD, RuntimeError(ZONE), RejectedError, "asynccommit.store=jvm"),
    (HEAD, FileNotFoundError("/a"), NotFoundError, "/a"),
    (RENAME, FileNotFoundError("rename source /a is not found.\n\tat x"), NotFoundError, "found"),
    (HdfsRequest("get", "/d"), FileNotFoundError("Path is not a file: /d"), PreconditionError, ""),
    (RENAME, FileExistsError("rename destination /b already exists"), ExistsError, "/b"),
    (HdfsRequest("mkdir", "/f"), FileExistsError("Path is not a directory"), PreconditionError, ""),
    (
        HdfsRequest("mkdir", "/f/d"),
        remote("org.apache.hadoop.fs.ParentNotDirectoryException", "/f (is not a directory)"),
        PreconditionError,
        "/f",
    ),
    (
        RENAME,
        remote("org.apache.hadoop.fs.ParentNotDirectoryException", "/f (is not a directory)"),
        NotFoundError,
        "/f",
    ),
    (
        HEAD,
        remote("org.apache.hadoop.security.AccessControlException", "/f (is not a directory)"),
        NotFoundError,
        "/f",
    ),
    (
        RENAME,
        remote("org.apache.hadoop.security.AccessControlException", "Permission denied: user=m"),
        DeniedError,
        "user=m: ask the owner",
    ),
    (
        RENAME,
        remote("org.apache.hadoop.hdfs.protocol.NSQuotaExceededException", "quota=1 file count=2"),
        RejectedError,
        "dfsadmin -setQuota",
    ),
    (
        RENAME,
        remote("org.apache.hadoop.hdfs.protocol.DSQuotaExceededException", "quota = 1 B"),
        RejectedError,
        "-setSpaceQuota",
    ),
    (
        RENAME,
        remote("org.apache.hadoop.hdfs.server.namenode.SafeModeException", "Cannot rename /a."),
        UnavailableError,
        "dfsadmin -safemode leave",
    ),
    (
        RENAME,
        remote("org.apache.hadoop.fs.InvalidPathException", "Invalid path name /a:b"),
        RejectedError,
        "allows no ':'",
    ),
    (
        RENAME,
        remote("org.apache.hadoop.hdfs.protocol.SnapshotException", "The directory /s cannot"),
        RejectedError,
        "-deleteSnapshot",
    ),
    (
        HdfsRequest("delete", "/d", writes=True),
        remote("org.apache.hadoop.fs.PathIsNotEmptyDirectoryException", "`/d is non empty'"),
        ExistsError,
        "/d",
    ),
    (
        RENAME,
        remote("org.apache.hadoop.ipc.StandbyException", "Operation category WRITE"),
        OutcomeUnknownError,
        "not active",
    ),
    (
        HEAD,
        remote("org.apache.hadoop.ipc.StandbyException", "Operation category READ"),
        UnavailableError,
        "not active",
    ),
    (
        RENAME,
        remote("org.apache.hadoop.ipc.RetriableException", "Server too busy"),
        ThrottledError,
        "busy",
    ),
    (
        RENAME,
        remote("org.apache.hadoop.ipc.RetriableException", "NameNode still not started"),
        UnavailableError,
        "started",
    ),
    (
        RENAME,
        remote("java.io.IOException", "Source /a and destination /d must both be directories"),
        ExistsError,
        "",
    ),
    (
        REPLACE,
        remote("java.io.IOException", "Source /a and destination /d must both be directories"),
        PreconditionError,
        "",
    ),
    (
        REPLACE,
        remote("java.io.IOException", "rename destination directory is not empty: /d"),
        ExistsError,
        "",
    ),
    (
        REPLACE,
        remote("java.io.IOException", "/a can't be moved from an encryption zone."),
        RejectedError,
        "encryption zone",
    ),
    (RENAME, RuntimeError('GSSAPIError(1, 2, "No credentials")'), DeniedError, "kinit"),
    (RENAME, OSError("RPC listener disconnected"), OutcomeUnknownError, "disconnected"),
    (HEAD, OSError("Connection refused (os error 111)"), UnavailableError, "refused"),
    (RENAME, TimeoutError(), OutcomeUnknownError, "NameNode"),
    (RENAME, BaseException("there is no reactor running"), OutcomeUnknownError, "reactor"),
    (RENAME, NotImplementedError("KMS"), RejectedError, "KMS"),
    (HEAD, RuntimeError('DataTransferError("broken")'), UnavailableError, "broken"),
    (
        RENAME,
        remote("org.apache.hadoop.ipc.RpcServerException", "bad header", "FatalRPCError"),
        OutcomeUnknownError,
        "bad header",
    ),
]


@pytest.mark.parametrize("request_, error, kind, text", KNOWN)
def test_each_error_has_one_meaning(
    request_: HdfsRequest, error: BaseException, kind: type[StoreError], text: str
) -> None:
    """The class tells what the caller does next, and the text the remedy, without a stack."""
    found = translate(request_, error)

    assert type(found) is kind
    assert (found.op, found.path) == (request_.op, request_.path)
    assert text in found.detail
    assert "FSNamesystem" not in found.detail


def test_failover_is_waited_for() -> None:
    """With several NameNodes a refusal by a standby asks for a pause, which needs no budget."""
    standby = remote("org.apache.hadoop.ipc.StandbyException", "Operation category")
    written = translate(RENAME._replace(group=True), standby)
    assert isinstance(written, OutcomeUnknownError)
    assert written.busy
    read = translate(HEAD._replace(group=True), standby)
    assert isinstance(read, ThrottledError)
    assert read.retry_after == 1.0


def test_message_is_that_of_the_exception() -> None:
    """The class is named without its packages, and other errors show their text alone."""
    assert message_of(remote("java.io.IOException", 'a \\"b\\"')) == 'IOException: a "b"'
    assert message_of(RuntimeError('InvalidArgument("No NameNode hosts found")')) == (
        "No NameNode hosts found"
    )
