"""The harness bites where versions keep late requests harmless: each rule of theirs, broken."""

from __future__ import annotations

from typing import Any

import pytest

from asynccommit.commit.context import CommitContext
from asynccommit.commit.ownership import flat_directory
from asynccommit.commit.ownership import takeover as ownership
from asynccommit.commit.ownership.lease import Lease
from asynccommit.commit.steps import move_aside
from asynccommit.commit.steps.rename_files import RenameFiles
from asynccommit.stores.base import Info, Kind, Store
from asynccommit.stores.gcs.errors import GcsRequest
from asynccommit.stores.gcs.moves import Moves
from asynccommit.stores.gcs.store import GcsStore
from asynccommit.stores.policies.lost_replies import ReplyVerdict, _Case
from asynccommit.stores.tree import is_there
from tests.crash.checks import Check, crowds, encounters, late, points, seeds
from tests.crash.scenarios import IN_THE_WAY, SMALLEST
from tests.crash.test_planted import Plant, bites
from tests.crash.test_zombies import Meeting


def aborts_openly(patch: pytest.MonkeyPatch) -> None:
    """Abort after a look for a record, and leave its place to whoever comes."""

    async def look(run: CommitContext) -> Info | None:
        if await is_there(run.store, run.layout.record):
            return None
        return Info(run.layout.record, Kind.FILE)

    patch.setattr(flat_directory, "close_record", look)


def takes_over_blindly(patch: pytest.MonkeyPatch) -> None:
    """Take a commit over, and look for no end of it."""

    async def confirm(run: CommitContext, held: Lease) -> None:
        held.closed = False

    patch.setattr(ownership, "_confirm", confirm)


def leaves_sources(patch: pytest.MonkeyPatch) -> None:
    """Roll back what was moved, and leave to late moves what was not."""

    async def nothing(*_: Any) -> None:
        """Take nothing."""

    patch.setattr(RenameFiles, "fence", nothing)


def keeps_versions(patch: pytest.MonkeyPatch) -> None:
    """Leave old files that were not moved aside as they are."""

    async def nothing(*_: Any) -> None:
        """Move nothing."""

    patch.setattr(move_aside, "_take_version", nothing)


def brings_back_the_same_version(patch: pytest.MonkeyPatch) -> None:
    """Rename an old file back, with the etag that a late rename names."""

    async def back(store: Store, source: str, dest: str, etag: str | None) -> None:
        await store.rename(source, dest, etag=etag)

    patch.setattr(move_aside, "rename_anew", back)


def moves_anything(patch: pytest.MonkeyPatch) -> None:
    """Move whatever has the name."""
    rename = GcsStore.rename

    async def unconditional(self: GcsStore, source: str, dest: str, **options: Any) -> None:
        await rename(self, source, dest, **{**options, "etag": None})

    patch.setattr(GcsStore, "rename", unconditional)


def content_is_enough(patch: pytest.MonkeyPatch) -> None:
    """Take a rename for done if its content is at the destination, whatever is at the source."""

    async def done(*_: Any) -> ReplyVerdict:
        return ReplyVerdict.DONE

    patch.setattr(_Case, "_told_by_source", done)


def deletes_sources_by_name(patch: pytest.MonkeyPatch) -> None:
    """Delete after a copy whatever has the name of its source."""

    async def delete(self: Moves, request: GcsRequest, source: str) -> None:
        await self._client.ask(request, "DELETE", self._client.objects + source, "")

    patch.setattr(Moves, "_delete_source", delete)


def claims_over_claims(patch: pytest.MonkeyPatch) -> None:
    """Claim a commit, decide its end, whatever others have said."""
    put = GcsStore.put

    async def over(self: GcsStore, path: str, data: bytes, **options: Any) -> Info:
        if "/commit-o" in path:  # owner, outcome
            options["overwrite"] = True
        return await put(self, path, data, **options)

    patch.setattr(GcsStore, "put", over)


# --- what catches them ------------------------------------------------------------------------


def _a_late_request(way: Meeting) -> bool:
    """A request of a commit is held while another rolls the commit back."""
    return (way.first, way.second) == ("commit", "rollback") and way.alone and not way.dies


def _a_late_driver(way: Meeting) -> bool:
    """A driver that commits sleeps while another begins to roll back, and dies."""
    return (way.first, way.second) == ("commit", "rollback") and way.expired and way.dies


PLANTED: dict[str, tuple[Plant, Check]] = {
    "abort leaves the record's place": (aborts_openly, crowds(SMALLEST, "abort", "flat")),
    "takeover looks for no end": (takes_over_blindly, points(SMALLEST, "resume", "flat")),
    "rollback leaves sources": (leaves_sources, encounters(SMALLEST, "flat", _a_late_request)),
    "old files keep their versions": (keeps_versions, late(IN_THE_WAY, "rollback", "flat")),
    "old files come back as they were": (
        brings_back_the_same_version,
        late(IN_THE_WAY, "rollback", "express"),
    ),
    "moves by name": (moves_anything, late(IN_THE_WAY, "resume", "hns")),
    "sources deleted by name": (deletes_sources_by_name, late(IN_THE_WAY, "resume", "steps")),
    "content is enough": (content_is_enough, seeds("steps")),
    "claims not exclusive": (claims_over_claims, encounters(SMALLEST, "flat", _a_late_driver)),
}


@pytest.mark.full
@pytest.mark.every(3)
@pytest.mark.sample(1)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_caught(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some run ends in a way in which it must not."""
    plant, check = PLANTED[bug]

    bites(plant, check, monkeypatch)
