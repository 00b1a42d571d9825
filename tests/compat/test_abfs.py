"""Hadoop's ABFS client against the emulator: every call of a filesystem, and lost responses."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from asynccommit.testing.emulators.adls.emulator import EmulatorThread
from asynccommit.testing.models.fault_rules import Fault
from tests.support.abfs import Abfs
from tests.support.hadoop import HadoopError

pytestmark = [pytest.mark.jvm, pytest.mark.timeout(180)]

HARD = "/a b/p=100%25/é 日本/x+y&z#?[1]"


@pytest.fixture
def abfs(jvm: Abfs, emulator: EmulatorThread, request: pytest.FixtureRequest) -> Iterator[Abfs]:
    """Yield the JVM, on a filesystem of this test's own, in fair weather."""
    yield jvm.use_filesystem_of(request.node.nodeid)
    emulator.do(lambda running: running.weather.clear())


def call(abfs: Abfs, name: str, *args: Any) -> Any:
    """Call a method of Hadoop's filesystem; texts that begin with a slash are paths."""
    values = [abfs.path(arg) if str(arg).startswith("/") else arg for arg in args]
    with abfs.errors():
        return getattr(abfs.filesystem(), name)(*values)


def names(abfs: Abfs, path: str) -> dict[str, int]:
    """Return what a listing says: names and sizes, -1 for a directory."""
    return {
        str(status.getPath().getName()): -1 if status.isDirectory() else int(status.getLen())
        for status in call(abfs, "listStatus", path)
    }


def write(abfs: Abfs, path: str, data: bytes) -> None:
    """Write a file as Hadoop does: create, append, flush and close."""
    abfs.write(Path(path), data)


def etag(abfs: Abfs, path: str) -> str:
    """Return the etag in Hadoop's status of a file."""
    return str(call(abfs, "getFileStatus", path).getEtag())


def refused(abfs: Abfs, name: str, *args: Any) -> str:
    """Return the class of the exception that a call ends in."""
    with pytest.raises(HadoopError) as caught:
        call(abfs, name, *args)
    return caught.value.java_class


def strike(emulator: EmulatorThread, **fault: Any) -> None:
    """Have the emulator do this to requests to come."""
    emulator.do(lambda running: running.weather.add(Fault.from_json(fault)))


def count(emulator: EmulatorThread, op: str) -> int:
    """Return how many requests of a kind have come so far."""
    return emulator.do(lambda running: running.weather.requests[op])


def test_mkdirs(abfs: Abfs) -> None:
    """Directories are made with their parents, and again without harm."""
    assert call(abfs, "mkdirs", f"{HARD}/d")
    assert call(abfs, "mkdirs", f"{HARD}/d")
    assert call(abfs, "mkdirs", HARD)
    assert names(abfs, HARD) == {"d": -1}
    assert call(abfs, "getFileStatus", HARD).isDirectory()


def test_mkdirs_where_a_file_is(abfs: Abfs) -> None:
    """A file is neither replaced by a directory nor gets children."""
    write(abfs, "/file", b"1")

    assert refused(abfs, "mkdirs", "/file") == "FileAlreadyExistsException"
    assert "Exception" in refused(abfs, "mkdirs", "/file/d/e")
    assert abfs.read(Path("/file")) == b"1"


def test_write_and_overwrite(abfs: Abfs) -> None:
    """What is written is read, what is overwritten has gone, and its etag is another."""
    write(abfs, f"{HARD}/file", b"one and two")
    first = etag(abfs, f"{HARD}/file")
    write(abfs, f"{HARD}/file", b"three")

    assert abfs.read(Path(f"{HARD}/file")) == b"three"
    assert names(abfs, HARD) == {"file": 5}
    assert etag(abfs, f"{HARD}/file") != first


def test_create_without_replacing(abfs: Abfs) -> None:
    """A file that is to be new is refused where one is."""
    write(abfs, "/file", b"1")

    assert refused(abfs, "create", "/file", False) == "FileAlreadyExistsException"
    assert abfs.read(Path("/file")) == b"1"


def test_hflush_and_append(abfs: Abfs) -> None:
    """Bytes are visible after a flush, before the file is closed; append goes on at the end."""
    stream = call(abfs, "create", "/file", True)
    with abfs.errors():
        stream.write(b"12345")
        stream.hflush()
        flushed = names(abfs, "/")
        stream.write(b"67")
        stream.close()
        stream = call(abfs, "append", "/file")
        stream.write(b"89")
        stream.close()

    assert flushed == {"file": 5}
    assert abfs.read(Path("/file")) == b"123456789"


def test_file_of_twenty_megabytes(abfs: Abfs, tmp_path: Path) -> None:
    """A file of many blocks arrives whole, and is read whole, in order."""
    data = os.urandom(20_000_003)
    (tmp_path / "sent").write_bytes(data)
    local = abfs.new("org.apache.hadoop.fs.Path", f"file:{tmp_path}")
    sent = abfs.new("org.apache.hadoop.fs.Path", local, "sent")
    back = abfs.new("org.apache.hadoop.fs.Path", local, "back")
    call(abfs, "copyFromLocalFile", sent, "/large")
    call(abfs, "copyToLocalFile", False, "/large", back, True)

    assert names(abfs, "/") == {"large": len(data)}
    assert (tmp_path / "back").read_bytes() == data


def test_list_in_pages(abfs: Abfs, emulator: EmulatorThread) -> None:
    """Pages of five bring every path once; a listing of nothing is an error."""
    for number in range(12):
        call(abfs, "mkdirs", f"/d/{number:02}")
    small = abfs.filesystem({"fs.azure.list.max.results": "5"})
    before = count(emulator, "list")
    with abfs.errors():
        found = [str(status.getPath().getName()) for status in small.listStatus(abfs.path("/d"))]
        small.close()

    assert found == [f"{number:02}" for number in range(12)]
    assert count(emulator, "list") - before == 3
    assert refused(abfs, "listStatus", "/nowhere") == "FileNotFoundException"


def test_status(abfs: Abfs) -> None:
    """Size, time, owner, permission and etag are the same in a status and in a listing."""
    write(abfs, "/d/file", b"12345")
    one = call(abfs, "getFileStatus", "/d/file")
    [two] = call(abfs, "listStatus", "/d")

    def told(status: Any) -> tuple[Any, ...]:
        who = (str(status.getOwner()), str(status.getGroup()), str(status.getPermission()))
        return (*who, status.getLen(), status.getModificationTime(), str(status.getEtag()))

    assert told(one) == told(two)
    assert one.getLen() == 5
    assert refused(abfs, "getFileStatus", "/nowhere") == "FileNotFoundException"


def test_attributes(abfs: Abfs) -> None:
    """Extended attributes and permissions are kept, and a rename keeps them too."""
    permission = abfs.new("org.apache.hadoop.fs.permission.FsPermission", "640")
    write(abfs, "/file", b"1")
    call(abfs, "setXAttr", "/file", "user.colour", b"blue")
    call(abfs, "setPermission", "/file", permission)
    call(abfs, "rename", "/file", "/moved")

    assert bytes(call(abfs, "getXAttr", "/moved", "user.colour")) == b"blue"
    assert str(call(abfs, "getFileStatus", "/moved").getPermission()) == "rw-r-----"


def test_rename_keeps_the_etag(abfs: Abfs) -> None:
    """A file has its etag under its new name, also when its directory was renamed."""
    write(abfs, f"{HARD}/a", b"1")
    before = etag(abfs, f"{HARD}/a")
    renamed = call(abfs, "rename", f"{HARD}/a", f"{HARD}/b"), call(abfs, "rename", HARD, "/x")

    assert renamed == (True, True)
    assert etag(abfs, "/x/b") == before
    assert names(abfs, "/x") == {"b": 1}


def test_rename_that_is_refused(abfs: Abfs) -> None:
    """Onto a file, of nothing, to nowhere, into itself: false, and nothing has changed."""
    write(abfs, "/d/a", b"1")
    write(abfs, "/d/b", b"22")
    pairs = [("/d/a", "/d/b"), ("/nowhere", "/d/c"), ("/d/a", "/nowhere/a"), ("/d", "/d/e")]

    assert [call(abfs, "rename", *pair) for pair in pairs] == [False] * 4
    assert names(abfs, "/d") == {"a": 1, "b": 2}


def test_rename_onto_a_directory(abfs: Abfs) -> None:
    """The service moves a file or a directory into a directory that is there, once."""
    write(abfs, "/from/a", b"1")
    call(abfs, "mkdirs", "/to")
    renamed = [call(abfs, "rename", path, "/to") for path in ("/from/a", "/from", "/from")]

    assert renamed == [True, True, False]
    assert names(abfs, "/to/a") == {"a": 1}
    assert names(abfs, "/to/from") == {}


def test_delete(abfs: Abfs) -> None:
    """A tree goes when asked for by name, and not as if it were empty."""
    write(abfs, "/d/e/file", b"1")

    assert "Exception" in refused(abfs, "delete", "/d", False)
    assert call(abfs, "delete", "/d/e/file", False)
    assert call(abfs, "delete", "/d", True)
    assert not call(abfs, "delete", "/d", True)
    assert names(abfs, "/") == {}


def test_delete_in_pages(abfs: Abfs, emulator: EmulatorThread) -> None:
    """A deletion that the service does in parts is carried on to its end."""
    for number in range(7):
        call(abfs, "mkdirs", f"/d/{number}")
    limits = emulator.do(lambda running: running.model.limits)
    emulator.do(lambda running: setattr(running.model, "limits", limits._replace(delete=3)))
    try:
        assert call(abfs, "delete", "/d", True)
    finally:
        emulator.do(lambda running: setattr(running.model, "limits", limits))

    assert names(abfs, "/") == {}


IDENTITIES: Mapping[str, Mapping[str, str]] = {
    "by transaction id": {},
    "by etag": {"fs.azure.enable.client.transaction.id": "false"},
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", ["after", "cut"])
@pytest.mark.parametrize("identity", IDENTITIES)
def test_rename_whose_answer_is_lost(
    abfs: Abfs, emulator: EmulatorThread, kind: str, identity: str
) -> None:
    """It happened, then 500 or no answer at all: the client finds out and says true."""
    write(abfs, "/d/a", b"1")
    before = etag(abfs, "/d/a")
    client = abfs.filesystem({"fs.azure.list.max.results": "7", **IDENTITIES[identity]})
    strike(emulator, kind=kind, op="rename", times=1, code="OperationTimedOut")
    with abfs.errors():
        renamed = client.rename(abfs.path("/d/a"), abfs.path("/d/b"))
        client.close()

    assert renamed
    assert etag(abfs, "/d/b") == before
    assert names(abfs, "/d") == {"b": 1}


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", ["after", "cut"])
@pytest.mark.parametrize("op", ["create", "append", "flush", "mkdir"])
def test_write_whose_answer_is_lost(
    abfs: Abfs, emulator: EmulatorThread, kind: str, op: str
) -> None:
    """The other writes are repeated, or found to be done."""
    strike(emulator, kind=kind, op=op, times=1, code="OperationTimedOut")
    with abfs.errors():
        stream = call(abfs, "create", "/file", False)
        stream.write(b"12345")
        stream.close()

    assert call(abfs, "mkdirs", "/new")
    assert names(abfs, "/") == {"file": 5, "new": -1}
    assert abfs.read(Path("/file")) == b"12345"


@pytest.mark.parametrize("kind, said", [("after", True), ("cut", False)])
def test_delete_whose_answer_is_lost(
    abfs: Abfs, emulator: EmulatorThread, kind: str, said: bool
) -> None:
    """The tree is gone; that nothing was there is said where the JDK sent again by itself."""
    write(abfs, "/d/file", b"1")
    strike(emulator, kind=kind, op="delete", times=1, code="OperationTimedOut")

    assert call(abfs, "delete", "/d", True) == said
    assert names(abfs, "/") == {}


@pytest.mark.sample(3)
@pytest.mark.parametrize("op", ["create", "append", "flush", "rename", "list", "read", "delete"])
def test_server_that_is_busy(abfs: Abfs, emulator: EmulatorThread, op: str) -> None:
    """A request that is refused twice is repeated."""
    strike(emulator, kind="before", op=op, times=2, code="ServerBusy")
    write(abfs, "/d/a", b"12345")
    renamed = call(abfs, "rename", "/d/a", "/d/b")

    assert renamed
    assert names(abfs, "/d") == {"b": 5}
    assert abfs.read(Path("/d/b")) == b"12345"
    assert call(abfs, "delete", "/d", True)


def test_wrong_key(abfs: Abfs) -> None:
    """A wrong key is refused by name, and not asked for again and again."""
    key = f"fs.azure.account.key.{abfs.account}.dfs.core.windows.net"
    with pytest.raises(HadoopError) as caught:
        abfs.filesystem({key: "bm90IHRoZSBrZXk="})

    assert "AuthenticationFailed" in caught.value.message


def test_shared_access_signature(abfs: Abfs, emulator: EmulatorThread) -> None:
    """A signature opens the filesystem as the key does."""
    sas = signature(emulator, abfs)
    write(abfs, "/d/a", b"1")
    conf = {"fs.azure.account.auth.type": "SAS", "fs.azure.sas.fixed.token": sas}
    client = abfs.filesystem(conf)
    with abfs.errors():
        renamed = client.rename(abfs.path("/d/a"), abfs.path("/d/b"))
        client.close()

    assert renamed
    assert names(abfs, "/d") == {"b": 1}


def signature(emulator: EmulatorThread, abfs: Abfs) -> str:
    """Return a signature for the test's filesystem."""
    azure = pytest.importorskip("azure.storage.filedatalake")
    expiry = datetime.now(UTC) + timedelta(hours=1)
    generate: Callable[..., str] = azure.generate_file_system_sas
    where = (emulator.account, abfs.filesystem_name, emulator.key)
    return generate(*where, "racwdlmeop", expiry)
