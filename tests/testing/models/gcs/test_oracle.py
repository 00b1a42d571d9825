"""Random operations against dictionaries that know the rules in the plainest way."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from asynccommit.testing.models.gcs.model import ComposeSource, GcsRefusal, Preconditions
from asynccommit.testing.models.invariants import bucket_tree
from tests.testing.models.gcs.model import BUCKET, Bench

NAME = st.lists(st.sampled_from("ab"), min_size=1, max_size=3).map("/".join)
KINDS = [
    *("insert", "delete", "move", "rewrite", "compose", "patch"),
    *("folder", "drop_folder", "rename_folder"),
]


class Operation(NamedTuple):
    """One operation, and what it may need.

    Attributes:
        kind: one of ``KINDS``.
        name: what it is about; the source, if it has two.
        dest: of a move or copy; a second source of a compose.
        absent: only if nothing is at the place of the new object; of a folder: not its parents.
        current: only if the object is the one that was last seen of its name, right or wrong.
        data: to write.
    """

    kind: str
    name: str
    dest: str
    absent: bool
    current: bool | None
    data: bytes


OPERATION = st.builds(
    Operation,
    st.sampled_from(KINDS),
    NAME,
    NAME,
    st.booleans(),
    st.none() | st.booleans(),
    st.binary(max_size=2),
)


class Oracle:
    """Objects and folders. Answers with a status, 0 for yes."""

    def __init__(self, hns: bool) -> None:
        self.hns = hns
        self.objects: dict[str, bytes] = {}
        self.folders: set[str] = set()

    def put(self, name: str, data: bytes, absent: bool) -> int:
        """Make an object, and its folders where there are such."""
        if absent and name in self.objects:
            return 412
        self.objects[name] = data
        if self.hns:
            self.folders |= set(above(name))
        return 0

    def source(self, name: str, current: bool | None) -> int:
        """Look whether an object is there, and the one that is meant."""
        if name not in self.objects:
            return 404
        return 412 if current is False else 0

    def delete(self, name: str, current: bool | None) -> int:
        """Delete an object."""
        no = self.source(name, current)
        if not no:
            del self.objects[name]
        return no

    def move(self, name: str, dest: str, absent: bool, current: bool | None) -> int:
        """Move an object."""
        if name in self.objects and name == dest:
            return 400
        no = self.rewrite(name, dest, absent, current)
        if not no:
            del self.objects[name]
        return no

    def rewrite(self, name: str, dest: str, absent: bool, current: bool | None) -> int:
        """Copy an object."""
        no = self.source(name, current)
        return no or self.put(dest, self.objects[name], absent)

    def compose(self, name: str, other: str, absent: bool, current: bool | None) -> int:
        """Append one object to another one."""
        no = self.source(name, current) or self.source(other, None)
        return no or self.put(name, self.objects[name] + self.objects[other], absent)

    def folder(self, name: str, alone: bool) -> int:
        """Make a folder."""
        if not self.hns:
            return 412
        if name in self.folders:
            return 409
        if alone and not set(above(name)) <= self.folders:
            return 412
        self.folders |= {name, *above(name)}
        return 0

    def drop_folder(self, name: str) -> int:
        """Delete a folder."""
        if not self.hns:
            return 412
        if name not in self.folders:
            return 404
        if any(inside(other, name) for other in (*self.objects, *self.folders)):
            return 409
        self.folders.remove(name)
        return 0

    def rename_folder(self, name: str, dest: str) -> int:
        """Move a folder with all it holds."""
        if not self.hns:
            return 412
        if name not in self.folders:
            return 404
        if dest == name or inside(dest, name):
            return 400
        if dest in self.folders:
            return 409
        if not set(above(dest)) <= self.folders:
            return 412
        for old in [other for other in self.objects if inside(other, name)]:
            self.objects[dest + old[len(name) :]] = self.objects.pop(old)
        moved = {other for other in self.folders if other == name or inside(other, name)}
        self.folders -= moved
        self.folders |= {dest + old[len(name) :] for old in moved}
        return 0


def above(name: str) -> list[str]:
    """Return the folders above a name."""
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def inside(name: str, folder: str) -> bool:
    """Whether a name is below a folder."""
    return name.startswith(f"{folder}/")


def foretell(oracle: Oracle, operation: Operation) -> int:
    """Do one operation on the oracle and return its answer."""
    kind, name, dest, absent, current, data = operation
    actions: dict[str, Callable[[], int]] = {
        "insert": lambda: oracle.put(name, data, absent),
        "delete": lambda: oracle.delete(name, current),
        "move": lambda: oracle.move(name, dest, absent, current),
        "rewrite": lambda: oracle.rewrite(name, dest, absent, current),
        "compose": lambda: oracle.compose(name, dest, absent, current),
        "patch": lambda: oracle.source(name, current),
        "folder": lambda: oracle.folder(name, absent),
        "drop_folder": lambda: oracle.drop_folder(name),
        "rename_folder": lambda: oracle.rename_folder(name, dest),
    }
    return actions[kind]()


def perform(bench: Bench, operation: Operation) -> int:
    """Do one operation on the service and return its answer."""
    kind, name, dest, absent, current, data = operation
    there = bench.get_bucket(BUCKET).objects.get(name)
    generation = None if there is None or current is None else there.generation + (not current)
    mine = Preconditions(generation_match=generation)
    free = Preconditions(generation_match=0 if absent else None)
    actions: dict[str, Callable[[], object]] = {
        "insert": lambda: bench.insert(BUCKET, name, data, preconditions=free),
        "delete": lambda: bench.delete(BUCKET, name, preconditions=mine),
        "move": lambda: bench.move(
            BUCKET, name, dest, preconditions=free, source_preconditions=mine
        ),
        "rewrite": lambda: bench.rewrite(
            BUCKET, name, BUCKET, dest, preconditions=free, source_preconditions=mine
        ),
        "compose": lambda: bench.compose(
            BUCKET,
            name,
            [ComposeSource(name, generation_match=generation), ComposeSource(dest)],
            preconditions=free,
        ),
        "patch": lambda: bench.patch(BUCKET, name, {"metadata": {"k": "v"}}, preconditions=mine),
        "folder": lambda: bench.insert_folder(BUCKET, name, recursive=not absent),
        "drop_folder": lambda: bench.delete_folder(BUCKET, name),
        "rename_folder": lambda: bench.rename_folder(BUCKET, name, dest),
    }
    try:
        actions[kind]()
    except GcsRefusal as no:
        return no.status
    return 0


@given(st.booleans(), st.lists(OPERATION, max_size=40))
def test_any_sequence_ends_as_the_oracle_says(hns: bool, operations: list[Operation]) -> None:
    """After each operation both give the same answer and hold the same."""
    bench, oracle = Bench(hns=hns), Oracle(hns)
    for operation in operations:
        before = bench.copy()
        kept = bucket_tree(before, BUCKET)

        assert perform(bench, operation) == foretell(oracle, operation), operation

        assert {name: bench.data(name) for name in bench.names()} == oracle.objects, operation
        if hns:
            assert bench.folder_names() == sorted(f"{name}/" for name in oracle.folders)
        assert bucket_tree(before, BUCKET) == kept, operation


@given(st.lists(OPERATION, max_size=30))
def test_generations_tell_objects_apart(operations: list[Operation]) -> None:
    """No generation comes twice, and with one its content never changes."""
    bench = Bench(hns=True, soft_delete=100.0)
    contents: dict[int, bytes] = {}
    for operation in operations:
        perform(bench, operation)
        live = [bench.get(BUCKET, name) for name in bench.names()]
        assert len({found.generation for found in live}) == len(live)
        for found in live:
            assert contents.setdefault(found.generation, found.content.data) == found.content.data


@given(st.lists(OPERATION, max_size=30), NAME, NAME)
def test_a_move_keeps_what_it_moves(operations: list[Operation], source: str, dest: str) -> None:
    """With generations as preconditions the bytes end at one place or the other, never both."""
    bench = Bench(hns=True)
    for operation in operations:
        perform(bench, operation)
    before = bucket_tree(bench, BUCKET)
    move = Operation("move", source, dest, absent=True, current=True, data=b"")
    refused = perform(bench, move)
    after = bucket_tree(bench, BUCKET)

    if refused:
        assert after == before
        return
    files = {path: item for path, item in before.items() if item.data is not None}
    files[f"/{dest}"] = files.pop(f"/{source}")
    assert {path: item for path, item in after.items() if item.data is not None} == files
