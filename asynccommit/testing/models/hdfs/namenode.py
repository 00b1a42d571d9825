"""The namespace of a NameNode, with the methods of hdfs-native's client.

The rules are those of Hadoop 3.5: a rename without overwrite replaces nothing, moves nothing into a
directory and makes no parent; a recursive delete and the rename of a directory are one step; there
are no etags; a file keeps its number and its modification time when it is renamed. A directory may
be an encryption zone, which no rename enters or leaves, or have a quota of names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

_LONGEST = 255  # characters of a name
_NO_QUOTA = (1 << 64) - 1  # as the library shows -1


@dataclass(slots=True)
class HdfsNode:
    """A file or a directory.

    Attributes:
        number: survives renames, and is never used again.
        time: of the last change, in milliseconds since the epoch.
        data: content of a file.
        children: entries of a directory; ``None`` for a file.
        zone: an encryption zone begins here.
        quota: maximum number of names in this directory, itself included.
        owner: the user who has made it.
    """

    number: int
    time: int
    data: bytes = b""
    children: dict[str, HdfsNode] | None = None
    zone: bool = False
    quota: int | None = None
    owner: str = ""

    @property
    def size(self) -> int:
        """The length of a file in bytes."""
        return len(self.data)


class HdfsStatus(NamedTuple):
    """The facts that the library shows about a path."""

    path: str
    isdir: bool
    length: int
    modification_time: int
    owner: str


class HdfsSummary(NamedTuple):
    """The counts below a directory, and its quotas."""

    file_count: int
    directory_count: int
    quota: int = _NO_QUOTA
    space_consumed: int = 0
    space_quota: int = _NO_QUOTA


@dataclass(slots=True)
class HdfsWriteOptions:
    """The options of ``create``."""

    permission: int = 0o644
    overwrite: bool = False
    create_parent: bool = True


@dataclass(slots=True)
class HdfsWriter:
    """Writes a file, which is there and empty from the beginning."""

    _node: HdfsNode
    _tick: Callable[[], int]
    _parts: list[bytes] = field(default_factory=list)

    def write(self, data: bytes) -> None:
        """Add content."""
        self._parts.append(data)

    def hsync(self) -> None:
        """Have the content last; the model has no disks."""

    def close(self) -> None:
        """End the file."""
        self._node.data = b"".join(self._parts)
        self._node.time = self._tick()


class HdfsReader:
    """Reads a file."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def __len__(self) -> int:
        return len(self._data)

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        found = self._data[self._at : self._at + size]
        self._at += len(found)
        return found


class HdfsNameNode:
    """A NameNode.

    Args:
        now: seconds since the epoch. No two changes have the same millisecond.

    Attributes:
        user: the user who asks now.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._number = self._last = 0
        self.user = "alice"
        self.root = HdfsNode(0, 0, children={})

    # --- reads ---------------------------------------------------------------------------------

    def get_file_info(self, path: str) -> HdfsStatus:
        """Return the facts about a path. Raises ``FileNotFoundError``."""
        return _status(path, self._need(path))

    def list_status(self, path: str) -> list[HdfsStatus]:
        """Return the entries of a directory, or a file as its only entry."""
        node = self._need(path)
        if node.children is None:
            return [_status(path, node)]
        base = path.rstrip("/")
        return [_status(f"{base}/{name}", each) for name, each in sorted(node.children.items())]

    def get_content_summary(self, path: str) -> HdfsSummary:
        """Return the counts below a directory, and its quota of names."""
        node = self._need(path)
        nodes = list(_below(node))
        files = sum(each.children is None for each in nodes)
        quota = _NO_QUOTA if node.quota is None else node.quota
        return HdfsSummary(files, len(nodes) - files, quota)

    def read(self, path: str) -> HdfsReader:
        """Open a file. Raises ``FileNotFoundError`` for a directory too."""
        node = self._need(path)
        if node.children is not None:
            raise FileNotFoundError(f"Path is not a file: {path}")
        return HdfsReader(node.data)

    # --- changes -------------------------------------------------------------------------------

    def create(self, path: str, options: HdfsWriteOptions) -> HdfsWriter:
        """Make an empty file and return its writer."""
        if options.create_parent:
            self.mkdirs(_parent(path), options.permission, True)
        children, name = self._place(path)
        if name in children and not options.overwrite:
            raise FileExistsError(f"{path} for client already exists")
        self._charge(path, int(name not in children))
        node = children[name] = HdfsNode(self._next(), self._tick(), owner=self.user)
        return HdfsWriter(node, self._tick)

    def mkdirs(self, path: str, permission: int, create_parent: bool) -> None:
        """Make a directory; the parents too if they may be made."""
        at, so_far = self.root, ""
        names = _names(path)
        for number, name in enumerate(names):
            if at.children is None:
                raise not_directory(so_far)
            so_far += f"/{name}"
            if name not in at.children:
                if not create_parent and number < len(names) - 1:
                    raise FileNotFoundError(f"Parent directory doesn't exist: {so_far}")
                _check_name(so_far, name)
                self._charge(so_far, 1)
                at.children[name] = HdfsNode(
                    self._next(), self._tick(), children={}, owner=self.user
                )
            at = at.children[name]
        if at.children is None:
            raise FileExistsError(f"Path is not a directory: {path}")

    def delete(self, path: str, recursive: bool) -> bool:
        """Delete a file, or a directory with all it holds in one step."""
        node = self._find(path)
        if node is None:
            return False
        if node.children and not recursive:
            raise not_empty(path)
        children, name = self._place(path)
        del children[name]
        return True

    def rename(self, source: str, dest: str, overwrite: bool) -> None:
        """Rename by ``rename2``; ``overwrite`` replaces a file or empty directory."""
        node = self._find(source)
        if node is None:
            raise FileNotFoundError(f"rename source {source} is not found.")
        if f"{dest}/".startswith(f"{source}/") and dest != source:
            raise refused(f"Rename destination {dest} is a directory or file under source {source}")
        self._check_zones(source, dest)
        children, name = self._place(dest)
        there = children.get(name)
        if there is not None and (not overwrite or there is node):
            raise FileExistsError(f"rename destination {dest} already exists")
        if there is not None:
            _refuse_kinds(source, node, dest, there)
        self._charge(dest, sum(1 for _ in _below(node)), source)
        before, former = self._place(source)
        del before[former]
        children[name] = node

    # --- zones and quotas ----------------------------------------------------------------------

    def create_zone(self, path: str) -> None:
        """Have an encryption zone begin at an empty directory."""
        node = self._need(path)
        if node.children != {}:
            raise refused("Attempt to create an encryption zone for a non-empty directory.")
        node.zone = True

    def set_quota(self, path: str, names: int | None) -> None:
        """Set the quota of names of a directory."""
        self._need(path).quota = names

    def _check_zones(self, source: str, dest: str) -> None:
        """Refuse a rename into or out of a zone, but for the zone itself."""
        old, new = self._zone_of(_parent(source)), self._zone_of(_parent(dest))
        if old and not new:
            raise refused(f"{source} can't be moved from an encryption zone.")
        if old != new:
            raise refused(f"{source} can't be moved into an encryption zone.")

    def _zone_of(self, path: str) -> int:
        """Return the number of the zone of a path, which may be missing."""
        return max((node.number for _, node in self._way(path) if node.zone), default=0)

    def _charge(self, path: str, names: int, source: str = "") -> None:
        """Refuse names that are too many for a directory above ``path``."""
        for above, node in self._way(_parent(path)):
            inside = bool(source) and f"{source}/".startswith(f"{above.rstrip('/')}/")
            if node.quota is not None and not inside:
                used = names + sum(1 for _ in _below(node))
                if used > node.quota:
                    raise over_quota(above, node.quota, used)

    def _way(self, path: str) -> Iterator[tuple[str, HdfsNode]]:
        """Yield the directories of a path that exist, from the root on."""
        at, so_far = self.root, ""
        yield "/", at
        for name in _names(path):
            found = (at.children or {}).get(name)
            if found is None:
                return
            at, so_far = found, f"{so_far}/{name}"
            yield so_far, at

    # --- the tree ------------------------------------------------------------------------------

    def place(self, path: str, node: HdfsNode) -> None:
        """Put a file, without writing it, in a directory that exists."""
        children, name = self._place(path)
        children[name] = node

    def find(self, path: str) -> HdfsNode | None:
        """Return what is at a path, or ``None``."""
        return self._find(path)

    def _find(self, path: str) -> HdfsNode | None:
        at, so_far = self.root, ""
        for name in _names(path):
            if at.children is None:
                raise not_directory(so_far)
            found = at.children.get(name)
            if found is None:
                return None
            at, so_far = found, f"{so_far}/{name}"
        return at

    def _need(self, path: str) -> HdfsNode:
        node = self._find(path)
        if node is None:
            raise FileNotFoundError(f"File does not exist: {path}")
        return node

    def _place(self, path: str) -> tuple[dict[str, HdfsNode], str]:
        """Return the entries of the parent directory, and the name in it."""
        above, name = _parent(path), path.rpartition("/")[2]
        _check_name(path, name)
        parent = self._find(above)
        if parent is None:
            raise FileNotFoundError(f"Parent directory doesn't exist: {above}")
        if parent.children is None:
            raise not_directory(above)
        return parent.children, name

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _tick(self) -> int:
        self._last = max(self._last + 1, int(self._now() * 1000))
        return self._last


def _status(path: str, node: HdfsNode) -> HdfsStatus:
    is_dir = node.children is not None
    return HdfsStatus(path, is_dir, 0 if is_dir else node.size, node.time, node.owner)


def _below(node: HdfsNode) -> Iterator[HdfsNode]:
    yield node
    for child in (node.children or {}).values():
        yield from _below(child)


def _refuse_kinds(source: str, node: HdfsNode, dest: str, there: HdfsNode) -> None:
    """Refuse to replace another kind, or a directory that holds something."""
    if (node.children is None) != (there.children is None):
        kinds = "files" if node.children is None else "directories"
        raise refused(f"Source {source} and destination {dest} must both be {kinds}")
    if there.children:
        raise refused(f"rename destination directory is not empty: {dest}")


def _check_name(path: str, name: str) -> None:
    if ":" in name or name in (".", ".."):
        raise invalid_name(path)
    if len(name) > _LONGEST:
        raise too_long(name)


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name]


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


_FS = "org.apache.hadoop.fs"
_PROTOCOL = "org.apache.hadoop.hdfs.protocol"


def remote(java: str, message: str) -> RuntimeError:
    """Return the error of the library for an exception of a NameNode."""
    return RuntimeError(f'RPCError("{java}", "{message}")')


def not_directory(path: str) -> RuntimeError:
    """Return the error for a path below a file."""
    return remote(f"{_FS}.ParentNotDirectoryException", f"{path} (is not a directory)")


def not_empty(path: str) -> RuntimeError:
    """Return the error for a directory that holds something."""
    return remote(
        f"{_FS}.PathIsNotEmptyDirectoryException", f"`{path} is non empty': Directory is not empty"
    )


def invalid_name(path: str) -> RuntimeError:
    """Return the error for a name that HDFS does not allow."""
    return remote(f"{_FS}.InvalidPathException", f"Invalid file name: {path}")


def too_long(name: str) -> RuntimeError:
    """Return the error for a name that is too long."""
    kind = f"{_PROTOCOL}.FSLimitException$PathComponentTooLongException"
    return remote(kind, f"The maximum path component name limit of {name[:20]} is exceeded")


def over_quota(path: str, quota: int, used: int) -> RuntimeError:
    """Return the error for names beyond the quota of a directory."""
    return remote(
        f"{_PROTOCOL}.NSQuotaExceededException",
        f"The NameSpace quota (directories and files) of directory {path} is exceeded: "
        f"quota={quota} file count={used}",
    )


def refused(message: str) -> RuntimeError:
    """Return the error for a rename that cannot be done."""
    return remote("java.io.IOException", message)
