"""Random operations against a dictionary that knows the rules in the plainest way."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from asynccommit.testing.models.adls.account import IF_ABSENT, NO_CONDITIONS, Refusal
from tests.testing.models.adls.model import FS, Bench

PATH = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map("/".join)


class Operation(NamedTuple):
    """One operation, and what it may need.

    Attributes:
        kind: ``create``, ``mkdir``, ``write``, ``delete``, ``legacy`` or ``posix``.
        path: what it is about; the source of a rename.
        dest: of a rename.
        flag: only if nothing is there; of a delete: recursive.
        data: to write.
    """

    kind: str
    path: str
    dest: str
    flag: bool
    data: bytes


KINDS = ["create", "mkdir", "write", "delete", "legacy", "posix"]
OPERATION = st.builds(
    Operation,
    st.sampled_from(KINDS),
    PATH,
    PATH,
    st.booleans(),
    st.binary(min_size=1, max_size=4),
)


class Oracle:
    """Path -> content, or ``None`` for a directory. Answers with a code, ``""`` for yes."""

    def __init__(self) -> None:
        self.tree: dict[str, bytes | None] = {}

    def below(self, path: str) -> list[str]:
        """Return every path below."""
        return [other for other in self.tree if other.startswith(f"{path}/")]

    def is_file(self, path: str) -> bool:
        """Whether a file is there."""
        return self.tree.get(path) is not None

    def ancestors(self, path: str) -> list[str]:
        """Return the directories above, without the root."""
        names = path.split("/")
        return ["/".join(names[:n]) for n in range(1, len(names))]

    def create(self, path: str, absent: bool) -> str:
        """Make an empty file."""
        return self._make(path, absent, b"")

    def mkdir(self, path: str, absent: bool) -> str:
        """Make a directory."""
        return self._make(path, absent, None)

    def _make(self, path: str, absent: bool, content: bytes | None) -> str:
        if any(self.is_file(above) for above in self.ancestors(path)):
            return "PathConflict"
        if path in self.tree and (absent or self.is_file(path) == (content is None)):
            return "PathAlreadyExists"
        for above in self.ancestors(path):
            self.tree.setdefault(above, None)
        self.tree[path] = content
        return ""

    def write(self, path: str, data: bytes) -> str:
        """Append and flush."""
        if path not in self.tree:
            return "PathNotFound"
        content = self.tree[path]
        if content is None:
            return "ResourceTypeMismatch"
        self.tree[path] = content + data
        return ""

    def delete(self, path: str, recursive: bool) -> str:
        """Delete."""
        if path not in self.tree:
            return "PathNotFound"
        if self.below(path) and not recursive:
            return "DirectoryNotEmpty"
        for gone in [path, *self.below(path)]:
            del self.tree[gone]
        return ""

    def rename(self, source: str, dest: str, absent: bool, posix: bool) -> str:
        """Rename."""
        if source not in self.tree:
            return "SourcePathNotFound"
        directory = self.tree[source] is None
        if directory and f"{dest}/".startswith(f"{source}/"):
            return "InvalidRenameSourcePath"
        if posix and dest in self.tree and dest != source and not self.is_file(dest):
            dest = f"{dest}/{source.rpartition('/')[2]}"
        parent = dest.rpartition("/")[0]
        if parent and (parent not in self.tree):
            return "RenameDestinationParentPathNotFound"
        if self.is_file(parent):
            return "InvalidDestinationPath"
        if dest in self.tree and absent:
            return "PathAlreadyExists"
        return "" if dest == source else self._replace(source, dest, directory)

    def _replace(self, source: str, dest: str, directory: bool) -> str:
        if dest in self.tree and directory == self.is_file(dest):
            return "InvalidSourceOrDestinationResourceType"
        if directory and self.below(dest):
            return "DirectoryNotEmpty"
        for old in [source, *self.below(source)]:
            self.tree[dest + old[len(source) :]] = self.tree.pop(old)
        return ""


def answer(act: Callable[[], object]) -> str:
    """Return the code of a refusal, or ``""``."""
    try:
        act()
    except Refusal as no:
        return no.code
    return ""


def perform(account: Bench, operation: Operation) -> str:
    """Do one operation on the account and return its answer."""
    kind, path, dest, flag, data = operation
    conditions = IF_ABSENT if flag else NO_CONDITIONS
    actions: dict[str, Callable[[], object]] = {
        "create": lambda: account.create(FS, path, conditions=conditions),
        "mkdir": lambda: account.create(FS, path, directory=True, conditions=conditions),
        "write": lambda: append(account, path, data),
        "delete": lambda: account.delete(FS, path, recursive=flag),
    }
    rename = partial(account.rename, FS, dest, FS, path, mode=kind, conditions=conditions)
    return answer(actions.get(kind, rename))


def foretell(oracle: Oracle, operation: Operation) -> str:
    """Do one operation on the oracle and return its answer."""
    kind, path, dest, flag, data = operation
    if kind == "create":
        return oracle.create(path, flag)
    if kind == "mkdir":
        return oracle.mkdir(path, flag)
    if kind == "write":
        return oracle.write(path, data)
    if kind == "delete":
        return oracle.delete(path, flag)
    return oracle.rename(path, dest, flag, kind == "posix")


def append(account: Bench, path: str, data: bytes) -> None:
    """Add to the end of a file."""
    account.append(FS, path, account.head(FS, path).size, data, flush=True)


def tree_of(account: Bench) -> dict[str, bytes | None]:
    """Return what the account holds."""
    found: dict[str, bytes | None] = {}
    for path in account.names():
        found[path] = None if account.head(FS, path).is_dir else account.data(path)
    return found


@given(st.lists(OPERATION, max_size=40))
def test_any_sequence_ends_as_the_oracle_says(operations: list[Operation]) -> None:
    """After each operation both give the same answer and hold the same tree."""
    account, oracle = Bench(), Oracle()
    for operation in operations:
        assert perform(account, operation) == foretell(oracle, operation), operation
        assert tree_of(account) == oracle.tree, operation


@given(st.lists(OPERATION, max_size=30), PATH, PATH)
def test_rename_keeps_what_it_moves(operations: list[Operation], source: str, dest: str) -> None:
    """Every etag below the source is found below the destination, and nothing else changed."""
    account = Bench()
    for operation in operations:
        perform(account, operation)
    before = {path: account.head(FS, path).etag for path in account.names()}

    refused = answer(
        lambda: account.rename(FS, dest, FS, source, mode="legacy", conditions=IF_ABSENT)
    )

    after = {path: account.head(FS, path).etag for path in account.names()}
    moved = {
        dest + path[len(source) :] if f"{path}/".startswith(f"{source}/") else path: etag
        for path, etag in before.items()
    }
    assert after == (before if refused else moved)
    assert sorted(after.values()) == sorted(before.values())
