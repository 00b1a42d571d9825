"""A job that is put into the model is one that tasks have committed."""

from __future__ import annotations

import pytest

from asynccommit.formats.manifest import decode_manifest
from asynccommit.job import Layout
from asynccommit.sim.nodes import find
from asynccommit.sim.store import Account
from asynccommit.simulate.placed import FILESYSTEM, SIZE, Placed
from asynccommit.simulate.setup import Setup
from asynccommit.stages.load import decode_entries, digest
from asynccommit.urls import parse_url

LAYOUT = Layout(parse_url(f"abfs://{FILESYSTEM}@simulated.dfs.core.windows.net/table"), "one")


def _account() -> Account:
    account = Account("simulated", now=lambda: 0.0, new_id=lambda: "id")
    account.create_filesystem(FILESYSTEM)
    return account


@pytest.mark.parametrize(
    "setup",
    [Setup(files=1, tasks=1, partitions=1), Setup(files=103, tasks=7, partitions=5)],
    ids=["one file", "uneven"],
)
def test_manifests_list_the_files_that_are_there(setup: Setup) -> None:
    """Each file is there once, with the size and etag that its manifest says."""
    account, told = _account(), list[int]()
    commits = Placed(account, LAYOUT, setup).all_tasks(told.append)
    root = account.head_filesystem(FILESYSTEM).root
    dests: list[str] = []
    for commit in commits:
        path = LAYOUT.manifest(commit.task_id)
        _, data = account.read(FILESYSTEM, path[1:])
        manifest = decode_manifest(data, path)
        entries, directories = decode_entries(LAYOUT, manifest)
        nodes = [find(root, entry.source[1:]) for entry in entries]

        assert commit.digest == digest(data)
        assert commit.files == len(entries)
        assert commit.bytes == len(entries) * SIZE
        assert [(e.size, e.etag) for e in entries] == [(n.size, n.etag) for n in nodes if n]
        assert {entry.dest.rpartition("/")[0] for entry in entries} == {*directories}
        dests += [entry.dest for entry in entries]

    assert told[-1] == len({*dests}) == len(dests) == setup.files
    assert len(commits) == setup.tasks
    assert len({dest.rpartition("/")[0] for dest in dests}) == setup.partitions


def test_a_packed_manifest_reads_as_any_file() -> None:
    """A manifest is compressed in memory, and nobody sees that."""
    account = _account()
    commit = Placed(account, LAYOUT, Setup(files=50, tasks=1, partitions=5)).all_tasks(print)[0]
    path = LAYOUT.manifest(commit.task_id)[1:]
    node, data = account.read(FILESYSTEM, path)

    assert node.size == len(data)
    assert account.read(FILESYSTEM, path, 10, 20)[1] == data[10:20]
    assert account.read(FILESYSTEM, path, -5)[1] == data[-5:]
