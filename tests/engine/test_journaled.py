"""Moves with a journal: all or nothing, with the journal as the witness."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.layouts.layout import Layout
from asynccommit.engine import BulkError, move_tree, rename_files, resume, rollback
from asynccommit.engine.journals import Journal
from asynccommit.errors import (
    DeniedError,
    ExistsError,
    NotFoundError,
    OptionError,
    OwnedError,
    PreconditionError,
    PreflightError,
    UnsupportedError,
)
from asynccommit.formats.commit_record import Owner
from asynccommit.formats.move_journal import MoveJournal
from asynccommit.options.job import Options
from asynccommit.runtime.host import this_host
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.urls import Address, parse_url
from tests.commit.planning.test_plan_file import forge
from tests.engine.conftest import KINDS, RENAMING, Place, on
from tests.support.faults import Fault, Faults, apart

TREE = {"in/a": "1", "in/d/b": "2", "in/d/e/c": "3"}
NEW = {f"out/{name.removeprefix('in/')}": text for name, text in TREE.items()}


def _opened(place: Place) -> Place:
    """Tell the store its URL, as ``open_store`` does."""
    schemes = {"local": ("file", ""), "adls": ("abfs", "data@sim"), "s3": ("s3a", "data")}
    place.store.address = Address(*schemes.get(place.kind, ("gs", "data")), place.root)
    return place


def _state(journal: Path) -> str:
    return str(json.loads(journal.read_text())["state"])


@on(RENAMING)
async def test_a_tree_moves_and_merges(place: Place, tmp_path: Path) -> None:
    """Files and empty directories arrive, the source is gone, and the journal says so."""
    _opened(place)
    await place.write({**TREE, "out/d/own": "own"})
    if place.store.traits.directories:
        await place.store.mkdir(place("in/empty"))
    journal = tmp_path / "sub" / "move.json"

    report = await move_tree(place.store, place("in"), place("out"), journal=journal)

    assert (report.done, report.failed, report.bytes) == (3, 0, 3)
    assert await place.files("out") == {**NEW, "out/d/own": "own"}
    assert not await place.exists("in")
    assert not await place.exists("out/_temporary")
    assert await place.exists("out/empty") == place.store.traits.directories
    assert _state(journal) == "finished"
    again = await resume(place.store, journal)
    assert (again.done, again.skipped) == (0, 3)


@on(RENAMING)
async def test_pairs_move(place: Place, tmp_path: Path) -> None:
    """Files named one by one, one of them with its etag."""
    _opened(place)
    await place.write(TREE)
    etag = (await place.store.head(place("in/d/b"))).etag
    pairs = [(place("in/a"), place("x/y/1")), (place("in/d/b"), place("x/2"), etag)]

    report = await rename_files(place.store, pairs, journal=tmp_path / "j")

    assert report.done == 2
    assert await place.files() == {"x/y/1": "1", "x/2": "2", "in/d/e/c": "3"} | {
        name: text for name, text in (await place.files()).items() if name == "j"
    }


@on(RENAMING)
async def test_one_file_in_the_way_keeps_all(place: Place, tmp_path: Path) -> None:
    """Nothing is moved, nothing is left behind, and the same journal can be used again."""
    _opened(place)
    await place.write({**TREE, "out/d/b": "own"})
    journal = tmp_path / "move.json"

    with pytest.raises(BulkError, match="or replace it") as caught:
        await move_tree(place.store, place("in"), place("out"), journal=journal)
    assert isinstance(caught.value.cause, ExistsError)
    assert caught.value.report.done == 0
    assert await place.files("in") == TREE
    assert await place.files("out") == {"out/d/b": "own"}
    assert not journal.exists()

    await move_tree(place.store, place("in"), place("out"), journal=journal, replace=True)
    assert await place.files("out") == NEW


@on(RENAMING[:2])
async def test_what_is_missing_or_changed_keeps_all(place: Place, tmp_path: Path) -> None:
    """A source that is gone, or has another etag, is found before the first rename."""
    _opened(place)
    await place.write(TREE)
    for pair, kind in (
        ((place("in/none"), place("x/2")), NotFoundError),
        ((place("in/d/b"), place("x/2"), "1-2-3"), PreconditionError),
        ((place("in/d"), place("x/2")), PreconditionError),
    ):
        pairs = [(place("in/a"), place("x/1")), pair]
        with pytest.raises(BulkError) as caught:
            await rename_files(place.store, pairs, journal=tmp_path / "j")
        assert isinstance(caught.value.cause, kind)
        assert await place.files("in") == TREE
        assert not (tmp_path / "j").exists()


@on(["local"])
async def test_what_does_not_go_with_a_journal(place: Place, tmp_path: Path) -> None:
    """Options of other moves, a journal that moves itself, another store, a used journal."""
    _opened(place)
    await place.write({**TREE, "other/x": "x"})
    ends = place("in"), place("out")
    with pytest.raises(OptionError, match="copy"):
        await move_tree(place.store, *ends, copy=True, journal=tmp_path / "j")
    with pytest.raises(OptionError, match="as a whole"):
        await move_tree(place.store, *ends, on_error="continue", journal=tmp_path / "j")
    with pytest.raises(OptionError, match="choose another"):
        await move_tree(place.store, *ends, journal=place("in/j"))
    with pytest.raises(OptionError, match="neither a local file nor on the store"):
        await move_tree(place.store, *ends, journal="abfs://c@a/j")
    await move_tree(place.store, *ends, journal=tmp_path / "j")
    with pytest.raises(PreflightError, match="finished: delete it"):
        await move_tree(place.store, place("other"), place("new"), journal=tmp_path / "j")
    (tmp_path / "text").write_text("no journal")
    with pytest.raises(Exception, match="text"):
        await move_tree(place.store, place("other"), place("new"), journal=tmp_path / "text")
    assert await place.files("other") == {"other/x": "x"}
    place.store.address = None
    with pytest.raises(OptionError, match="open_store"):
        await move_tree(place.store, place("other"), place("new"), journal=tmp_path / "k")


@on(["local"])
async def test_links_are_refused(place: Place, tmp_path: Path) -> None:
    """A link is no file whose content a plan could know."""
    _opened(place)
    await place.write(TREE)
    Path(place("in/link")).symlink_to(place("in/a"))
    with pytest.raises(PreconditionError, match="a link"):
        await move_tree(place.store, place("in"), place("out"), journal=tmp_path / "j")
    assert not (tmp_path / "j").exists()


@on(KINDS[-1:])
async def test_copies_have_no_journal(place: Place, tmp_path: Path) -> None:
    """Where there is no rename, a journal is refused."""
    _opened(place)
    await place.write({"in/a": "1"})
    with pytest.raises(UnsupportedError):
        await move_tree(place.store, place("in"), place("out"), journal=tmp_path / "j")


@pytest.mark.parametrize("kind", ["text", "long", "link", "dangling", "directory", "fifo"])
@pytest.mark.parametrize("place", ["local"], indirect=True)
async def test_what_is_no_journal_is_left_as_it_is(place: Place, tmp_path: Path, kind: str) -> None:
    """A path where anything else is, is refused before a file is moved."""
    _opened(place)
    await place.write(TREE)
    notes, journal = tmp_path / "notes", tmp_path / "journal"
    notes.write_text("mine")
    _make_anything(journal, kind, notes)
    before = journal.lstat()

    with pytest.raises(PreflightError, match="choose another path"):
        await move_tree(place.store, place("in"), place("out"), journal=journal)

    assert journal.lstat() == before
    assert notes.read_text() == "mine"
    assert TREE.items() <= (await place.files("in")).items()
    assert not await place.exists("out")


def _make_anything(path: Path, kind: str, notes: Path) -> None:
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind in ("link", "dangling"):
        path.symlink_to(notes if kind == "link" else notes.with_name("none"))
    else:
        path.write_text("mine" * (1 if kind == "text" else 2**19))


@on(["local"])
async def test_a_plan_that_replaces_what_its_journal_keeps(place: Place, tmp_path: Path) -> None:
    """The journal says whether files are replaced, and not the plan, which others may write."""
    _opened(place)
    await place.write({"in/a": "1", "in/b": "2", "out/keep": "k"})
    broken = Faults(Fault("rename", DeniedError, "/out/b"))
    store = Wrapped(place.store, *apart([broken]))
    store.address = place.store.address
    journal = tmp_path / "j"
    with pytest.raises(BulkError):
        await move_tree(store, place("in"), place("out"), journal=journal)
    job_id = next(Path(place("out")).glob("_temporary/*/00/commit-record.json")).parts[-3]
    layout = Layout(Address("file", "", place("out")), job_id)
    committer = ManifestCommitter(place.store, layout, Options(), this_host())
    await place.write({"out/b": "theirs"})
    etag = (await place.store.head(place("out/b"))).etag
    await forge(committer, lambda chunk: chunk.update(aside=[["b", "file", etag]]))
    with pytest.raises(BulkError, match="replaces no existing file"):
        await resume(place.store, journal)

    assert Path(place("out/b")).read_text() == "theirs"


@pytest.mark.parametrize("skew", [-86_400.0, 86_400.0])
@on(["local"])
async def test_a_move_that_another_machine_is_about_to_begin(
    place: Place, tmp_path: Path, skew: float
) -> None:
    """It is given up after its lease by the clock that dates its journal, whoever asks."""
    _opened(place)
    await place.write(TREE)
    journal, made = tmp_path / "move.json", this_host()
    source, dest = (str(parse_url(place(name))) for name in ("in", "out"))
    owner = Owner("move-1", "another-machine", "them", "")
    content = MoveJournal("move-1", source, dest, True, False, int(made.now() * 1000), owner)
    await Journal(place.store, parse_url(str(journal))).begin(content)
    wrong = replace(made, now=lambda: made.now() + skew)

    with pytest.raises(OwnedError, match="may be about to begin it"):
        await rollback(place.store, journal, host=wrong)
    written = journal.stat().st_mtime - 3_600
    os.utime(journal, (written, written))
    await rollback(place.store, journal, host=wrong)

    assert _state(journal) == "undone"
    assert await place.files("in") == TREE
