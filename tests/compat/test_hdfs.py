"""Rules of HDFS that a commit by renames depends on, as a real NameNode has them."""

from __future__ import annotations

from itertools import count

import pytest

from tests.support.hadoop import HadoopError
from tests.support.mini_hdfs import MiniHdfs

pytestmark = [pytest.mark.jvm, pytest.mark.full]

_numbers = count()


@pytest.fixture
def root(hdfs: MiniHdfs) -> str:
    """Return a new empty directory of this test's own."""
    path = f"/test-{next(_numbers)}"
    hdfs.mkdirs(path)
    return path


def test_the_servers_are_on_loopback(hdfs: MiniHdfs) -> None:
    """Neither the NameNode nor the DataNode can be reached from another host."""
    node = hdfs.cluster.getDataNodes().get(0)
    servers = [
        hdfs.cluster.getNameNode().getNameNodeAddress(),
        hdfs.cluster.getNameNode().getHttpAddress(),
        node.getXferAddress(),
        node.ipcServer.getListenerAddress(),
    ]
    assert all(server.getAddress().isLoopbackAddress() for server in servers)


def test_a_rename_replaces_no_file(hdfs: MiniHdfs, root: str) -> None:
    """A rename2 without OVERWRITE to a file that exists fails, and both files stay."""
    hdfs.write(f"{root}/a", b"new")
    hdfs.write(f"{root}/b", b"old")
    with pytest.raises(HadoopError, match="FileAlreadyExistsException"):
        hdfs.rename(f"{root}/a", f"{root}/b")
    assert (hdfs.read(f"{root}/a"), hdfs.read(f"{root}/b")) == (b"new", b"old")


@pytest.mark.parametrize("inside", [(), ("x",)], ids=["empty", "not-empty"])
def test_a_rename_moves_nothing_into_a_directory(
    hdfs: MiniHdfs, root: str, inside: tuple[str, ...]
) -> None:
    """A rename2 without OVERWRITE refuses a directory at the destination, even an empty one."""
    hdfs.mkdirs(f"{root}/from")
    hdfs.mkdirs(f"{root}/to")
    for name in inside:
        hdfs.write(f"{root}/to/{name}", b"")
    with pytest.raises(HadoopError, match="FileAlreadyExistsException"):
        hdfs.rename(f"{root}/from", f"{root}/to")
    assert hdfs.exists(f"{root}/from")
    assert not hdfs.exists(f"{root}/to/from")


def test_the_old_rename_moves_into_a_directory(hdfs: MiniHdfs, root: str) -> None:
    """The rename of Hadoop's FileSystem API puts a file below a directory at the destination."""
    hdfs.write(f"{root}/a", b"data")
    hdfs.mkdirs(f"{root}/to")
    assert hdfs.filesystem.rename(hdfs.path(f"{root}/a"), hdfs.path(f"{root}/to"))
    assert hdfs.read(f"{root}/to/a") == b"data"


def test_a_rename_makes_no_parent(hdfs: MiniHdfs, root: str) -> None:
    """A rename2 below a directory that is missing fails, and the source stays."""
    hdfs.write(f"{root}/a", b"data")
    with pytest.raises(HadoopError, match="FileNotFoundException"):
        hdfs.rename(f"{root}/a", f"{root}/missing/a")
    assert hdfs.exists(f"{root}/a")
    assert not hdfs.exists(f"{root}/missing")


def test_a_rename_below_a_file_is_refused(hdfs: MiniHdfs, root: str) -> None:
    """A rename2 whose destination has a file as its parent fails with an error of its own."""
    hdfs.write(f"{root}/a", b"")
    hdfs.write(f"{root}/file", b"")
    with pytest.raises(HadoopError, match="ParentNotDirectoryException"):
        hdfs.rename(f"{root}/a", f"{root}/file/a")


def test_a_rename_of_nothing_is_refused(hdfs: MiniHdfs, root: str) -> None:
    """A rename2 without a source fails, so a second sending of a rename does nothing."""
    with pytest.raises(HadoopError, match="FileNotFoundException"):
        hdfs.rename(f"{root}/missing", f"{root}/b")
    assert not hdfs.exists(f"{root}/b")


def test_the_file_id_survives_renames(hdfs: MiniHdfs, root: str) -> None:
    """A file keeps its id when it is renamed, and when a directory above it is."""
    hdfs.write(f"{root}/d/a", b"data")
    before = hdfs.file_id(f"{root}/d/a")
    hdfs.rename(f"{root}/d/a", f"{root}/d/b")
    hdfs.rename(f"{root}/d", f"{root}/e")
    assert hdfs.file_id(f"{root}/e/b") == before
    assert not hdfs.exists(f"{root}/d")


def test_a_new_file_of_the_same_name_has_another_id(hdfs: MiniHdfs, root: str) -> None:
    """The id of a file that was deleted is not given again to its successor."""
    hdfs.write(f"{root}/a", b"data")
    before = hdfs.file_id(f"{root}/a")
    assert hdfs.delete_tree(f"{root}/a")
    hdfs.write(f"{root}/a", b"data")
    assert hdfs.file_id(f"{root}/a") != before


def test_a_create_is_exclusive_and_makes_parents(hdfs: MiniHdfs, root: str) -> None:
    """A create without overwrite makes what is missing above it, once."""
    hdfs.write(f"{root}/x/y/a", b"one")
    with pytest.raises(HadoopError, match="FileAlreadyExistsException"):
        hdfs.write(f"{root}/x/y/a", b"two")
    assert hdfs.read(f"{root}/x/y/a") == b"one"


def test_a_tree_is_deleted_by_one_request(hdfs: MiniHdfs, root: str) -> None:
    """A recursive delete takes all below a directory, and tells if there was nothing."""
    hdfs.write(f"{root}/x/y/a", b"data")
    assert hdfs.delete_tree(f"{root}/x")
    assert not hdfs.exists(f"{root}/x")
    assert not hdfs.delete_tree(f"{root}/x")


def test_a_colon_is_refused_by_the_name_node(hdfs: MiniHdfs, root: str) -> None:
    """A name with a colon is invalid, and the NameNode itself says so."""
    with pytest.raises(HadoopError, match="Invalid file name"), hdfs.hadoop.errors():
        hdfs.filesystem.getClient().mkdirs(f"{root}/a:b", None, True)


def test_a_quota_refuses_a_rename(hdfs: MiniHdfs, root: str) -> None:
    """A rename into a directory whose quota of names is used up fails, and the source stays."""
    hdfs.write(f"{root}/a", b"data")
    hdfs.mkdirs(f"{root}/full")
    # The directory counts as a name; the second number is the quota of space.
    hdfs.filesystem.setQuota(hdfs.path(f"{root}/full"), 1, 2**63 - 1)
    with pytest.raises(HadoopError, match="NSQuotaExceededException"):
        hdfs.rename(f"{root}/a", f"{root}/full/a")
    assert hdfs.read(f"{root}/a") == b"data"


def test_a_directory_with_a_snapshot_cannot_be_renamed(hdfs: MiniHdfs, root: str) -> None:
    """A directory of which a snapshot exists can be neither renamed nor deleted."""
    hdfs.write(f"{root}/d/a", b"data")
    hdfs.filesystem.allowSnapshot(hdfs.path(f"{root}/d"))
    hdfs.filesystem.createSnapshot(hdfs.path(f"{root}/d"), "one")
    with pytest.raises(HadoopError, match="snapshot"):
        hdfs.rename(f"{root}/d", f"{root}/e")
    with pytest.raises(HadoopError, match="snapshot"):
        hdfs.delete_tree(f"{root}/d")
    assert hdfs.read(f"{root}/d/a") == b"data"


def test_safe_mode_refuses_changes(hdfs: MiniHdfs, root: str) -> None:
    """A NameNode in safe mode answers reads, and refuses a rename with an error of its own."""
    hdfs.write(f"{root}/a", b"data")
    action = hdfs.hadoop.java("org.apache.hadoop.fs.SafeModeAction")
    hdfs.filesystem.setSafeMode(action.FORCE_EXIT)
    hdfs.filesystem.setSafeMode(action.ENTER)
    try:
        with pytest.raises(HadoopError, match="SafeModeException"):
            hdfs.rename(f"{root}/a", f"{root}/b")
        assert hdfs.exists(f"{root}/a")
    finally:
        hdfs.filesystem.setSafeMode(action.LEAVE)


def test_an_open_file_can_be_renamed_and_grows(hdfs: MiniHdfs, root: str) -> None:
    """A writer goes on after its file was renamed, so a rename alone does not end it."""
    stream = hdfs.filesystem.create(hdfs.path(f"{root}/a"), False)
    stream.write(b"one")
    stream.hflush()
    hdfs.rename(f"{root}/a", f"{root}/b")
    assert not hdfs.filesystem.isFileClosed(hdfs.path(f"{root}/b"))
    stream.write(b"two")
    stream.close()
    assert hdfs.read(f"{root}/b") == b"onetwo"
