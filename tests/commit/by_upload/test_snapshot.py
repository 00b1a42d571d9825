"""The snapshot of a destination answers the setup of a job of uploads."""

from __future__ import annotations

import pytest

from asynccommit.commit.by_upload.snapshot import look_at_destination
from asynccommit.commit.job.snapshot import take_snapshot, view
from asynccommit.errors import NotFoundError
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.support.round_trips import S3, MeasuredUploads


def test_what_a_setup_asks_is_known() -> None:
    """The destination and what is missing in it need no further request."""

    async def main() -> int:
        measured = MeasuredUploads()
        await measured.store.put(f"{S3.path}/part-0", b"x")
        store = await look_at_destination(measured.job._run())
        assert store is not None
        before = len(measured.weather.seen)
        assert (await store.head(S3.path)).is_dir
        assert [info.path for info in (await store.list(S3.path)).entries] == ["/table/part-0"]
        with pytest.raises(NotFoundError):
            await store.head(f"{S3.path}/_spark_metadata")
        return len(measured.weather.seen) - before

    assert run_virtual(main()) == 0


def test_a_file_and_a_directory_of_one_name_are_both_shown() -> None:
    """A listing with two entries of one path is not part of a snapshot."""

    async def main() -> list[bool]:
        measured = MeasuredUploads()
        for name in ("a", "a/b"):
            await measured.store.put(f"{S3.path}/{name}", b"x")
        found = await take_snapshot(measured.store, infos=[], listings=[S3.path], files=[])
        page = await view(measured.store, found).list(S3.path)
        return sorted(info.is_dir for info in page.entries)

    assert run_virtual(main()) == [False, True]
