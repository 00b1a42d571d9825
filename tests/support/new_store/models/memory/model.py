"""The service in memory: files and directories, and what it refuses."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from posixpath import dirname

from asynccommit.stores.base import Info, Kind, Page
from tests.support.new_store.stores.memory.errors import Answer

PAGE = 7
LONGEST_NAME = 255
MISSING, EXISTS, MISMATCH = Answer("missing"), Answer("exists"), Answer("mismatch")


@dataclass(frozen=True)
class Node:
    """A file, or a directory, which has no content."""

    etag: str
    data: bytes | None = None


class MemoryModel:
    """Every method is one request: a path first, an ``Answer`` back."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self.nodes = {"/": self._new(None)}

    def _new(self, data: bytes | None) -> Node:
        return Node(f"e{next(self._numbers)}", data)

    def _info(self, path: str) -> Info:
        node = self.nodes[path]
        if node.data is None:
            return Info(path, Kind.DIRECTORY)
        return Info(path, Kind.FILE, len(node.data), node.etag)

    def _below(self, path: str) -> list[str]:
        return [each for each in self.nodes if each.startswith(f"{path.rstrip('/')}/")]

    def _is_dir(self, path: str) -> bool:
        return path in self.nodes and self.nodes[path].data is None

    def _no_place(self, path: str) -> Answer | None:
        """Return why nothing can be made at a path, whatever is there."""
        if len(path.rpartition("/")[2].encode()) > LONGEST_NAME:
            return Answer("the name is too long")
        return None if self._is_dir(dirname(path)) else MISSING

    def head(self, path: str) -> Answer:
        """Return what is at a path."""
        return Answer(value=self._info(path)) if path in self.nodes else MISSING

    def list(self, path: str, token: str | None) -> Answer:
        """Return a page of the children; the token is the last name of the page before."""
        if not self._is_dir(path):
            return MISMATCH if path in self.nodes else MISSING
        below = sorted(each for each in self._below(path) if dirname(each) == path and each != path)
        rest = [each for each in below if token is None or each > token]
        last = rest[PAGE - 1] if len(rest) > PAGE else None
        return Answer(value=Page(tuple(map(self._info, rest[:PAGE])), last))

    def get(self, path: str) -> Answer:
        """Return the content of a file."""
        if path not in self.nodes:
            return MISSING
        data = self.nodes[path].data
        return MISMATCH if data is None else Answer(value=data)

    def put(self, path: str, data: bytes, *, overwrite: bool) -> Answer:
        """Write a file."""
        if refused := self._no_place(path):
            return refused
        if path in self.nodes and not overwrite:
            return EXISTS
        if self._is_dir(path):
            return MISMATCH
        self.nodes[path] = self._new(data)
        return self.head(path)

    def delete(self, path: str) -> Answer:
        """Delete a file or an empty directory."""
        if self._below(path):
            return EXISTS
        return Answer() if self.nodes.pop(path, None) else MISSING

    def delete_tree(self, path: str) -> Answer:
        """Delete a path and everything below it."""
        for each in self._below(path):
            del self.nodes[each]
        return self.delete(path)

    def copy(self, source: str, dest: str, *, overwrite: bool) -> Answer:
        """Copy a file."""
        found = self.get(source)
        return found if found.code else self.put(dest, found.value, overwrite=overwrite)

    def rename(self, source: str, dest: str, *, replace: bool, etag: str | None) -> Answer:
        """Move a file, or a directory with all it holds."""
        if refused := self._no_rename(source, dest, replace, etag):
            return refused
        for each in [source, *self._below(source)]:
            self.nodes[dest + each.removeprefix(source)] = self.nodes.pop(each)
        return Answer()

    def _no_rename(self, source: str, dest: str, replace: bool, etag: str | None) -> Answer | None:
        if source not in self.nodes:
            return MISSING
        if etag not in (None, self.nodes[source].etag):
            return MISMATCH
        if dest.startswith(f"{source}/"):
            return Answer("a directory cannot be moved into itself")
        if dest in self.nodes and (not replace or self._below(dest)):
            return EXISTS
        if dest in self.nodes and self._is_dir(source) != self._is_dir(dest):
            return MISMATCH
        return self._no_place(dest)

    def mkdir(self, path: str, *, new: bool = False) -> Answer:
        """Make a directory and its missing parents."""
        if path in self.nodes:
            return EXISTS if new else Answer() if self._is_dir(path) else MISMATCH
        above = self.mkdir(dirname(path))
        if above.code:
            return above
        self.nodes[path] = self._new(None)
        return Answer()
