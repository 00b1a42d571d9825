"""A filesystem in memory that the kernel mounts through FUSE, with the quirks of real mounts.

``fuse(place, numbers="rename")`` mounts one in the namespace of ``in_namespace``, where any user
may. Its server is a process that speaks the kernel's protocol itself, so no library is needed; it
ends with the process that has mounted it. ``numbers`` says how files are numbered:

- ``stable``: as on a disk.
- ``rename``: a rename gives another number, as with rclone, and with whatever numbers by path.
- ``below``: the rename of a directory gives other numbers to all that is below it.
- ``look``: each look gives another number.

``links`` is the error of hard links, as ``EIO`` with rclone, or empty if they are made. ``flags``
says whether renames understand ``RENAME_NOREPLACE``; otherwise they answer ``EINVAL``.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from tests.support.namespaces import ForbiddenError

_ROOT = Path(__file__).parents[2]
_DEVICE = "/dev/fuse"
_NO_REPLACE, _DIES_WITH_PARENT = 1, 1
_WRITE = 1 << 17  # bytes of one request at most
_HEADER, _REPLY = struct.Struct("<IIQQIIIHH"), struct.Struct("<IiQ")
_ATTR = struct.Struct("<6Q10I")
_SETATTR = struct.Struct("<II6Q8I")


def fuse(
    place: str | Path, numbers: str = "stable", *, links: str = "", flags: bool = True
) -> subprocess.Popen[bytes]:
    """Mount an empty filesystem at ``place``, and return its server.

    From ``SIGUSR1`` on it numbers as with ``rename``; at ``SIGUSR2`` it gives everything another
    number, as a server does that has forgotten its own (sshfs). Raises ``ForbiddenError``.
    """
    Path(place).mkdir(parents=True, exist_ok=True)
    try:
        device = os.open(_DEVICE, os.O_RDWR)
    except OSError as error:
        raise ForbiddenError(f"{_DEVICE}: {error.strerror}") from error
    try:
        options = f"fd={device},rootmode=40000,user_id=0,group_id=0,default_permissions"
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"test", os.fsencode(place), b"fuse", 0, options.encode()):
            raise ForbiddenError(f"a FUSE mount: {os.strerror(ctypes.get_errno())}")
        command = [sys.executable, "-m", "tests.support.fuse", str(device)]
        command += [numbers, links, "flags" if flags else ""]
        server = subprocess.Popen(command, cwd=_ROOT, pass_fds=[device], stdout=subprocess.DEVNULL)
    finally:
        os.close(device)
    os.stat(place)  # waits for the server
    return server


@dataclass(eq=False)
class _Node:
    """A file or a directory."""

    id: int
    number: int
    mode: int
    uid: int
    gid: int
    time: int = field(default_factory=time.time_ns)
    data: bytearray = field(default_factory=bytearray)
    children: dict[bytes, _Node] = field(default_factory=dict)
    names: int = 1

    @property
    def is_dir(self) -> bool:
        return stat.S_ISDIR(self.mode)


class _Server:
    """Answers the requests of one mount, one at a time.

    Args:
        device: the descriptor of the connection.
        numbers: how files are numbered.
        links: the error of hard links.
        flags: whether a rename understands flags.
    """

    def __init__(self, device: int, numbers: str, links: str, flags: str) -> None:
        self._device, self._numbers = device, numbers
        self._links, self._flags = links, flags
        self._ids = count(1)
        self._others = count(1_000_000)
        self._nodes: dict[int, _Node] = {}
        self._made(0o755 | stat.S_IFDIR, 0, 0)
        self._answers: dict[int, Callable[[_Node, bytes], bytes]] = {
            1: self._lookup,
            3: self._getattr,
            4: self._setattr,
            5: self._readlink,
            9: self._mkdir,
            10: self._unlink,
            11: self._rmdir,
            12: self._rename,
            13: self._link,
            14: self._open,
            15: self._read,
            16: self._write,
            17: self._statfs,
            18: self._nothing,
            20: self._nothing,
            25: self._nothing,
            26: self._init,
            27: self._open,
            28: self._readdir,
            29: self._nothing,
            30: self._nothing,
            35: self._create,
            45: self._rename2,
        }

    def serve(self) -> None:
        """Answer until the filesystem is unmounted."""
        while True:
            try:
                request = os.read(self._device, _WRITE + 4096)
            except InterruptedError:
                continue
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.EAGAIN):  # it was interrupted
                    continue
                return
            _, opcode, unique, node, self._uid, self._gid, *_ = _HEADER.unpack_from(request)
            if opcode in (2, 42):  # what is forgotten is not answered
                continue
            code, body = self._answered(opcode, node, request[_HEADER.size :])
            os.write(self._device, _REPLY.pack(_REPLY.size + len(body), -code, unique) + body)

    def _answered(self, opcode: int, node: int, body: bytes) -> tuple[int, bytes]:
        answer = self._answers.get(opcode)
        if answer is None:
            return errno.ENOSYS, b""
        try:
            return 0, answer(self._nodes.get(node, self._nodes[1]), body)
        except OSError as error:
            return error.errno or errno.EIO, b""

    def _made(self, mode: int, uid: int, gid: int) -> _Node:
        number = next(self._ids)
        node = self._nodes[number] = _Node(number, number, mode, uid, gid)
        return node

    # --- answers

    def _init(self, _: _Node, body: bytes) -> bytes:
        major, minor, ahead, _flags = struct.unpack_from("<4I", body)
        big_writes = 1 << 5
        told = (major, min(minor, 31), ahead, big_writes, 16, 12, _WRITE, 1, 0, 0)
        return struct.pack("<4I2H2I2H8I", *told, *[0] * 8)

    def _attr(self, node: _Node) -> bytes:
        if self._numbers == "look":
            node.number = next(self._others)
        seconds, rest = divmod(node.time, 10**9)
        size = len(node.data)
        return _ATTR.pack(
            *(node.number, size, (size + 511) // 512, seconds, seconds, seconds),
            *(rest, rest, rest, node.mode, node.names, node.uid, node.gid, 0, 4096, 0),
        )

    def _entry(self, node: _Node) -> bytes:
        return struct.pack("<4Q2I", node.id, 0, 0, 0, 0, 0) + self._attr(node)

    def _child(self, node: _Node, name: bytes) -> _Node:
        if name not in node.children:
            raise OSError(errno.ENOENT, "")
        return node.children[name]

    def _lookup(self, node: _Node, body: bytes) -> bytes:
        return self._entry(self._child(node, body[:-1]))

    def _getattr(self, node: _Node, _: bytes) -> bytes:
        return struct.pack("<QII", 0, 0, 0) + self._attr(node)

    def _setattr(self, node: _Node, body: bytes) -> bytes:
        valid, _, _, size, _, _, mtime, _, _, rest, _, mode, _, uid, gid, _ = _SETATTR.unpack(body)
        if valid & 1:
            node.mode = stat.S_IFMT(node.mode) | stat.S_IMODE(mode)
        if valid & 2:
            node.uid = uid
        if valid & 4:
            node.gid = gid
        if valid & 8:
            node.data[:] = node.data[:size].ljust(size, b"\0")
            node.time = time.time_ns()
        if valid & 32:
            node.time = time.time_ns() if valid & 256 else mtime * 10**9 + rest
        return self._getattr(node, b"")

    def _readlink(self, _: _Node, __: bytes) -> bytes:
        raise OSError(errno.EINVAL, "")

    def _add(self, node: _Node, name: bytes, mode: int) -> _Node:
        if name in node.children:
            raise OSError(errno.EEXIST, "")
        child = node.children[name] = self._made(mode, self._uid, self._gid)
        node.time = time.time_ns()
        return child

    def _mkdir(self, node: _Node, body: bytes) -> bytes:
        mode, umask = struct.unpack_from("<II", body)
        return self._entry(self._add(node, body[8:-1], stat.S_IFDIR | mode & ~umask))

    def _create(self, node: _Node, body: bytes) -> bytes:
        _, mode, umask, _ = struct.unpack_from("<4I", body)
        child = self._add(node, body[16:-1], stat.S_IFREG | stat.S_IMODE(mode) & ~umask)
        return self._entry(child) + self._open(child, b"")

    def _gone(self, node: _Node, name: bytes) -> None:
        node.children.pop(name).names -= 1
        node.time = time.time_ns()

    def _unlink(self, node: _Node, body: bytes) -> bytes:
        if self._child(node, body[:-1]).is_dir:
            raise OSError(errno.EISDIR, "")
        self._gone(node, body[:-1])
        return b""

    def _rmdir(self, node: _Node, body: bytes) -> bytes:
        child = self._child(node, body[:-1])
        if not child.is_dir or child.children:
            raise OSError(errno.ENOTEMPTY if child.is_dir else errno.ENOTDIR, "")
        self._gone(node, body[:-1])
        return b""

    def _rename(self, node: _Node, body: bytes) -> bytes:
        (place,) = struct.unpack_from("<Q", body)
        return self._move(node, self._nodes[place], body[8:])

    def _rename2(self, node: _Node, body: bytes) -> bytes:
        place, flags, _ = struct.unpack_from("<QII", body)
        _, new, _ = body[16:].split(b"\0")
        if flags and not (self._flags and flags == _NO_REPLACE):
            raise OSError(errno.EINVAL, "")
        if flags and new in self._nodes[place].children:
            raise OSError(errno.EEXIST, "")
        return self._move(node, self._nodes[place], body[16:])

    def _move(self, node: _Node, place: _Node, names: bytes) -> bytes:
        old, new, _ = names.split(b"\0")
        child, there = self._child(node, old), place.children.get(new)
        if there is child:
            return b""
        if there is not None and there.children:
            raise OSError(errno.ENOTEMPTY, "")
        if there is not None:
            self._gone(place, new)
        place.children[new] = node.children.pop(old)
        node.time = place.time = time.time_ns()
        if self._numbers in ("rename", "below"):
            self._renumber(child, all_of_it=self._numbers == "rename")
        return b""

    def _renumber(self, node: _Node, *, all_of_it: bool) -> None:
        if all_of_it:
            node.number = next(self._others)
        for child in node.children.values():
            self._renumber(child, all_of_it=True)

    def by_renames(self, *_: object) -> None:
        """Number as with ``rename`` from now on."""
        self._numbers = "rename"

    def forget(self, *_: object) -> None:
        """Number all files and directories anew, once."""
        self._renumber(self._nodes[1], all_of_it=True)

    def _link(self, node: _Node, body: bytes) -> bytes:
        if self._links:
            raise OSError(getattr(errno, self._links), "")
        (old,) = struct.unpack_from("<Q", body)
        if body[8:-1] in node.children:
            raise OSError(errno.EEXIST, "")
        child = node.children[body[8:-1]] = self._nodes[old]
        child.names += 1
        node.time = time.time_ns()
        return self._entry(child)

    def _open(self, node: _Node, _: bytes) -> bytes:
        return struct.pack("<QII", node.id, 0, 0)

    def _read(self, node: _Node, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        return bytes(node.data[offset : offset + size])

    def _write(self, node: _Node, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        node.data[:] = node.data.ljust(offset, b"\0")
        node.data[offset : offset + size] = body[40 : 40 + size]
        node.time = time.time_ns()
        return struct.pack("<II", size, 0)

    def _readdir(self, node: _Node, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        found = b""
        for after, (name, child) in enumerate(list(node.children.items())[offset:], offset + 1):
            kind = stat.S_IFMT(child.mode) >> 12
            entry = struct.pack("<QQII", child.number, after, len(name), kind) + name
            entry += bytes(-len(entry) % 8)
            if len(found) + len(entry) > size:
                break
            found += entry
        return found

    def _statfs(self, _: _Node, __: bytes) -> bytes:
        return struct.pack("<5Q10I", 1 << 20, 1 << 20, 1 << 20, 0, 0, 4096, 255, 4096, *[0] * 7)

    def _nothing(self, _: _Node, __: bytes) -> bytes:
        return b""


if __name__ == "__main__":
    # The mount lives as long as the namespace, of which this process is a part.
    ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGKILL)
    _answering = _Server(int(sys.argv[1]), *sys.argv[2:])
    signal.signal(signal.SIGUSR1, _answering.by_renames)
    signal.signal(signal.SIGUSR2, _answering.forget)
    _answering.serve()
