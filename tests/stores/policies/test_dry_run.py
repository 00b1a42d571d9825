"""Record, the dry run: writes are noted and not done."""

from __future__ import annotations

import os
import random
from pathlib import Path

from asynccommit.stores.base import Info, Kind
from asynccommit.stores.parts import composite_etag
from asynccommit.stores.policies.dry_run import Record
from asynccommit.stores.policies.funnel import Op, Wrapped
from asynccommit.stores.registry import StoreSettings, open_store
from asynccommit.stores.urls import parse_url
from tests.support.stack import Answers, head, put, rename
from tests.testing.models.s3.bench import open_store as open_bucket


async def test_writes_are_noted_and_not_done() -> None:
    """Writes reach no store and are kept in order; a put answers what it would have made."""
    answers, record = Answers(), Record()
    call = record.around(answers)
    assert await call(rename()) is None
    assert await call(put()) == Info("/a", Kind.FILE, 4)
    assert answers.ops == []
    assert [repr(op) for op in record.ops] == [
        "rename('/a', '/b', replace=False)",
        "put('/a', <4 bytes>, overwrite=True)",
    ]


async def test_files_that_are_renamed_together_are_noted_one_by_one() -> None:
    """Whoever reads what a dry run would do finds a rename for each file."""
    answers, record = Answers(), Record()
    moves = [("/a", "/b", "1-1-1"), ("/c", "/d", None)]
    said = await record.around(answers)(Op("rename_many", (moves,), True, False))
    assert (said, answers.ops) == ((2, None), [])
    assert [(op.name, *op.args, op.options["etag"]) for op in record.ops] == [
        ("rename", *move) for move in moves
    ]


async def test_reads_pass() -> None:
    """A read is answered by the store and not noted."""
    info = Info("/a", Kind.FILE)
    record = Record()
    assert await record.around(Answers(info))(head()) is info
    assert record.ops == []


async def test_a_dry_run_changes_nothing_on_disk(tmp_path: Path) -> None:
    """A store opened for a dry run reads the disk and leaves it as it is."""
    (tmp_path / "f").write_text("kept")
    settings = StoreSettings(random.Random(1), dry_run=True)
    store = open_store(parse_url(str(tmp_path)), settings)
    root = str(tmp_path)
    await store.put(f"{root}/g", b"x")
    await store.rename(f"{root}/f", f"{root}/h")
    await store.mkdir(f"{root}/d")
    await store.copy(f"{root}/f", f"{root}/c")
    await store.delete_tree(root)
    await store.delete(f"{root}/f")
    await store.sync(f"{root}/g")
    assert await store.get(f"{root}/f", 100) == b"kept"
    assert os.listdir(root) == ["f"]
    (record,) = (policy for policy in store.policies if isinstance(policy, Record))
    assert [op.name for op in record.ops] == [
        *("put", "rename", "mkdir", "copy", "delete_tree", "delete")
    ]
    await store.aclose()


async def test_a_sync_is_neither_done_nor_noted() -> None:
    """Nothing was written that could be made to last, and nobody asked for the sync itself."""
    answers, record = Answers(), Record()
    assert await record.around(answers)(Op("sync", ("/a",), True, True)) is None
    assert (answers.ops, record.ops) == ([], [])


async def test_a_file_in_parts_is_noted_and_not_uploaded() -> None:
    """Whoever uploads goes on with what looks like an answer, up to the file that is not made."""
    store, record = open_bucket(), Record()
    dry = Wrapped(store, record)
    upload_id = await dry.create_upload("/f")
    part = await dry.put_part("/f", upload_id, 1, b"data")
    assert composite_etag([part]) is not None
    assert (await dry.complete_upload("/f", upload_id, [part])).path == "/f"
    await dry.abort_upload("/f", upload_id)
    await dry.put_marker("/m", {})
    assert await dry.delete_many([Info("/g", Kind.FILE), Info("/h", Kind.FILE)]) == [None, None]
    assert await dry.completed("/f", [part]) is None
    assert (await dry.list_uploads("/")).entries == ()
    assert [op.name for op in record.ops] == [
        *("create_upload", "put_part", "complete_upload", "abort_upload"),
        *("put_marker", "delete_many"),
    ]
    assert repr(store.bucket) == "Bucket(data: 0 objects, 0 uploads)"
