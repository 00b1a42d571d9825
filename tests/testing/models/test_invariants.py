"""Each check finds what it is for, and says nothing when all is well."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256

import pytest

from asynccommit.formats.commit_record import CommitRecord, Owner, encode_record
from asynccommit.testing.models.adls.account import AdlsAccount, AdlsLimits
from asynccommit.testing.models.invariants import (
    Item,
    Tree,
    abortable,
    complete,
    concurrent,
    continuity,
    exclusive,
    marked,
    named_in_vain,
    no_leftovers,
    refused,
    restored,
    rolled_back,
    same,
    success_of,
    tree_of,
    untouched,
    visible,
    within,
    words_of,
)

DEST = "/t"
JOB_DIR = f"{DEST}/_temporary/job"
TEMP = ".asynccommit-1-1.tmp"


def marker(job: str = "job", success: bool = True, names: Iterable[str] = ()) -> bytes:
    """Return a marker."""
    value = {
        "name": "org.apache.hadoop.fs.s3a.commit.files.SuccessData/1",
        "timestamp": 1_795_000_000_000,
        "success": success,
        "jobId": job,
        "filenames": list(names),
    }
    return json.dumps(value).encode()


def tree(**changed: Item | None) -> dict[str, Item]:
    """Return a table of two files and a marker; ``None`` takes a path away."""
    whole: dict[str, Item | None] = {
        DEST: Item(),
        f"{DEST}/day=1": Item(),
        f"{DEST}/day=1/a": Item(b"a", "1"),
        f"{DEST}/old": Item(b"old", "2"),
        f"{DEST}/_SUCCESS": Item(marker(), "3"),
    }
    whole |= {path if path[:1] == "/" else f"{DEST}/{path}": item for path, item in changed.items()}
    return {path: item for path, item in whole.items() if item is not None}


FILES: Tree = {f"{DEST}/day=1/a": Item(b"a", "1")}

WRONG: Mapping[str, tuple[Item | None, str]] = {
    "missing": (None, "is missing"),
    "another content": (Item(b"b", "1"), "holds b'b', not b'a'"),
    "longer": (Item(b"aa", "1"), "holds b'aa', not b'a'"),
    "another of the same content": (Item(b"a", "9"), "has the etag 9, not 1"),
    "a directory": (Item(), "is a directory, not a file"),
}


@pytest.mark.parametrize("item, says", WRONG.values(), ids=WRONG)
def test_complete(item: Item | None, says: str) -> None:
    """A committed file that is missing, changed, or a copy with another identity is found."""
    assert complete(tree(), FILES) == []
    assert [says in text for text in complete(tree(**{"day=1/a": item}), FILES)] == [True]


def test_exclusive() -> None:
    """A visible file that nobody committed is found; what readers pass over is not."""
    expected = [f"{DEST}/day=1/a", f"{DEST}/old"]
    hidden = {"_temporary/job/x": Item(b"x"), ".hidden": Item(b"x"), "day=1/_x/y": Item(b"x")}

    assert exclusive(tree(**hidden), DEST, expected) == []
    assert exclusive(tree(twice=Item(b"a")), DEST, expected) == [
        f"{DEST}/twice is visible but was not committed"
    ]


def test_concurrent() -> None:
    """Output that differs from that of serial commits is found; etags may differ."""
    assert concurrent(tree(**{"day=1/a": Item(b"a", "7")}), tree(), DEST) == []
    assert len(concurrent(tree(**{"day=1/a": Item(b"b", "1")}), tree(), DEST)) == 1
    assert len(concurrent(tree(more=Item(b"m")), tree(), DEST)) == 1


def test_abortable() -> None:
    """Whatever an aborted job leaves or takes is found; rubbish is allowed."""
    rubbish = {"_temporary": Item(), "_temporary/job": Item(), f"_temporary/job/{TEMP}": Item(b"")}

    assert abortable(tree(), tree(**rubbish)) == []
    assert len(abortable(tree(), tree(left=Item(b"x")))) == 1
    assert len(abortable(tree(), tree(old=None))) == 1


def test_continuity() -> None:
    """What changes after the end is found, and what a failed attempt wrote."""
    assert continuity(tree(), tree(**{"_temporary": Item()}), DEST, [b"zombie"]) == []
    assert len(continuity(tree(), tree(old=None), DEST)) == 1
    assert len(continuity(tree(), tree(old=Item(b"old", "8")), DEST)) == 1
    both = tree(new=Item(b"zombie"))
    assert continuity(both, both, DEST, [b"zombie"]) == [f"{DEST}/new belongs to a failed attempt"]


@pytest.mark.parametrize("item, says", WRONG.values(), ids=WRONG)
def test_marked(item: Item | None, says: str) -> None:
    """A marker without a file of the job that it names is found; another job's says nothing."""
    broken = {"day=1/a": item}
    others = {**broken, "_SUCCESS": Item(marker("another"))}

    assert marked(tree(), DEST, {"job": FILES}) == []
    assert [says in text for text in marked(tree(**broken), DEST, {"job": FILES})] == [True]
    assert marked(tree(**others), DEST, {"job": FILES}) == []
    assert marked(tree(**broken, _SUCCESS=None), DEST, {"job": FILES}) == []


def test_marker_of_a_failure() -> None:
    """A marker that says that its job failed is found."""
    failed = tree(_SUCCESS=Item(marker(success=False)))

    assert marked(failed, DEST, {"job": FILES}) == ["_SUCCESS says that job job failed"]


@pytest.mark.parametrize("data", [b"", b"{}", b"no json"])
def test_markers_of_others(data: bytes) -> None:
    """A marker that is not of our format names no job."""
    assert success_of(tree(_SUCCESS=Item(data)), DEST) is None


def test_untouched() -> None:
    """What was there and is not as it was is found, but for what the job replaces."""
    before = tree(**{"day=1/a": None, "_SUCCESS": None, "day=2/b": Item(b"b", "4")})

    assert untouched(before, tree(**{"day=2/b": Item(b"b", "4")})) == []
    assert len(untouched(before, tree())) == 1
    assert len(untouched(before, tree(**{"day=2/b": Item(b"b", "5")}))) == 1
    assert untouched(before, tree(), [f"{DEST}/day=2"]) == []


def test_no_leftovers() -> None:
    """What is left of a job is found; rubbish is allowed where requests may come late."""
    empty = {JOB_DIR: Item(), f"{JOB_DIR}/00": Item(), f"{JOB_DIR}/00/{TEMP}": Item(b"")}

    assert no_leftovers(tree(), JOB_DIR) == []
    assert len(no_leftovers(tree(**empty), JOB_DIR)) == 3
    assert no_leftovers(tree(**empty), JOB_DIR, late=True) == []
    left = tree(**empty, **{f"{JOB_DIR}/00/commit-record.json": Item(b"{}")})
    assert f"{JOB_DIR}/00/commit-record.json remains" in no_leftovers(left, JOB_DIR, late=True)
    assert no_leftovers(tree(**{f"{JOB_DIR}2": Item()}), JOB_DIR) == []


RECORD = CommitRecord(
    job_id="job",
    attempt=0,
    started_ms=0,
    owner=Owner("owner", "host", "alice"),
    lease=300.0,
    files=1,
    bytes=1,
    manifests="sha256:all",
    tasks={},
    mode="append",
    options={"planVersion": "7"},
    plan_id="plan",
)
PLACE = f"{JOB_DIR}/00"
SAID = {
    f"{PLACE}/{name}": Item(b"x", version="7")
    for name in (
        *("commit-plan-plan-00000.json", "commit-owner-0a1b-000002.json"),
        *("commit-outcome-0a1b.json", "commit-alive-0a1b-000001-000001.json"),
        *("commit-epoch-0a1b-000001.done", "commit-epoch-000001/_SUCCESS-0a1b.tmp"),
    )
}
OTHER = {
    "_temporary/job/00/manifests/m": Item(b"x"),
    "_temporary/job/00/tasks/a/f": Item(b"x"),
    "_temporary/job/00/commit-epoch-000001/aside/in/f": Item(b"x"),
}
"""No words, wherever they are."""


def with_record(data: bytes, **changed: Item | None) -> dict[str, Item]:
    """Return a tree in which a job's owner has said something."""
    return tree(**{**SAID, f"{PLACE}/commit-record.json": Item(data), **changed})


def test_words_of_nothing() -> None:
    """What owners say is rubbish without a record, with one of an abort, and without its plan."""
    record = encode_record(RECORD)
    place = {f"{PLACE}/commit-record.json"}
    plan = f"{PLACE}/commit-plan-plan-00000.json"

    assert words_of(tree(**SAID, **OTHER)) == SAID.keys()
    assert words_of(with_record(b"\0", **OTHER)) == SAID.keys() | place
    assert words_of(with_record(record, **{plan: None})) == (SAID.keys() | place) - {plan}
    assert words_of(with_record(record, **{plan: Item(b"x", version="8")})) == SAID.keys() | place


def test_words_of_a_commit() -> None:
    """With a record and its plan, with an end, or with what nobody can read, it is none."""
    record = encode_record(RECORD)
    plan = f"{PLACE}/commit-plan-plan-00000.json"
    tag = sha256(record).hexdigest()[:12]
    end = {f"{PLACE}/commit-epoch-{tag}-000001.done": Item(b"x")}

    assert words_of(with_record(record)) == set()
    assert words_of(with_record(record, **{plan: None}, **end)) == set()
    assert words_of(with_record(b"no record", **{plan: None})) == set()


def test_words_are_allowed_where_it_is_said() -> None:
    """And nothing else with them."""
    said = tree(**SAID)

    assert len(no_leftovers(said, JOB_DIR, late=True)) == len(SAID)
    assert no_leftovers(said, JOB_DIR, late=True, words=True) == []
    assert same(tree(), said, late=True, words=True) == []
    assert restored(tree(), said, late=True, words=True) == []
    assert abortable(tree(), said, words=True) == []
    for path, item in OTHER.items():
        assert len(no_leftovers(tree(**SAID, **{path: item}), JOB_DIR, late=True, words=True)) == 1


def test_resume_equals_undisturbed() -> None:
    """Another path, kind or content is found; when a marker was written, and by whom, is not."""
    later = json.loads(marker()) | {"timestamp": 1_795_000_999_000, "hostname": "another"}

    assert same(tree(), tree(_SUCCESS=Item(json.dumps(later).encode(), "9"))) == []
    assert len(same(tree(), tree(_SUCCESS=Item(marker("another"))))) == 1
    assert len(same(tree(), tree(_SUCCESS=Item(marker(names=["x"]))))) == 1
    assert len(same(tree(), tree(_SUCCESS=Item(b"")))) == 1
    assert len(same(tree(), tree(**{"day=1/a": Item(b"b")}))) == 1
    assert len(same(tree(), tree(**{"day=1/a": Item()}))) == 1
    assert len(same(tree(), tree(empty=Item()))) == 1
    assert same(tree(), tree(empty=Item()), late=True) == []
    assert same(tree(), tree(more=Item(b"x")), [f"{DEST}/more"]) == []


def test_rollback_equals_before() -> None:
    """Another path, kind, content or identity is found; rubbish only where it is allowed."""
    assert restored(tree(), tree()) == []
    assert len(restored(tree(), tree(old=Item(b"old", "9")))) == 1
    assert len(restored(tree(), tree(old=None))) == 1
    assert len(restored(tree(), tree(_SUCCESS=Item(marker(), "9")))) == 1
    assert len(restored(tree(), tree(**{"day=2": Item(), f"day=2/{TEMP}": Item(b"")}))) == 2
    assert restored(tree(), tree(**{"day=2": Item(), f"day=2/{TEMP}": Item(b"")}), late=True) == []
    assert restored(tree(empty=Item()), tree(), late=True) == [
        f"{DEST}/empty, a directory, is missing"
    ]


def test_a_directory_with_something_in_it_is_no_rubbish() -> None:
    """Late requests leave empty directories, never one with a file that has a name."""
    filled = tree(**{"day=2": Item(), "day=2/x": Item(b"")})

    assert len(same(tree(), filled, late=True)) == 2


def test_visible() -> None:
    """Readers pass over names with ``_`` or ``.`` in front, and never look beside."""
    more = {"_x": Item(b""), ".x": Item(b""), "/t2/x": Item(b""), "day=1/.x/y": Item(b"")}

    assert visible(tree(**more), DEST).keys() == {f"{DEST}/day=1/a", f"{DEST}/old"}


def test_within() -> None:
    """A path is within itself and what is above it, not within what has a name like it."""
    assert within("/a/b", ["/a"])
    assert within("/a", ["/a"])
    assert not within("/ab", ["/a"])
    assert not within("/a", [])


def test_tree_of() -> None:
    """A tree has every path of a filesystem, hidden ones too, however many pages they take."""
    account = AdlsAccount("x", now=lambda: 0.0, new_id=lambda: "i", limits=AdlsLimits(page=2))
    account.create_filesystem("data")
    for name in ("t/a", "t/.hidden", "t/_temporary/job/x"):
        account.create("data", name)
        account.append("data", name, 0, name.encode(), flush=True)

    found = tree_of(account, "data")

    assert found.keys() == {
        *("/t", "/t/a", "/t/.hidden", "/t/_temporary", "/t/_temporary/job"),
        "/t/_temporary/job/x",
    }
    assert found["/t"] == Item()
    assert found["/t/a"] == Item(b"t/a", account.head("data", "t/a").etag)


def test_refused() -> None:
    """A refused commit may only have written where jobs work."""
    work = {f"{JOB_DIR}/00/plan": Item(b"p")}
    assert refused(tree(), tree() | work, DEST) == []
    assert refused(tree(), tree(**{"new": Item(b"n")}), DEST) != []
    assert refused(tree(), tree(**{"old": None}), DEST) != []
    assert refused(tree(), tree(**{"old": Item(b"old", "9")}), DEST) != []


def test_rolled_back() -> None:
    """What a rollback leaves is named, or another's."""
    stays = {f"{DEST}/day=2": Item(), f"{DEST}/day=2/b": Item(b"b", "9")}
    assert rolled_back(tree(), tree()) == []
    assert len(rolled_back(tree(), tree() | stays)) == 2
    assert rolled_back(tree(), tree() | stays, left=[f"{DEST}/day=2/b"]) == []
    assert rolled_back(tree(), tree() | stays, foreign=[f"{DEST}/day=2/b"]) == []
    assert rolled_back(tree(), tree(**{"old": None})) != []
    assert rolled_back(tree(), tree(**{"old": None}), foreign=[f"{DEST}/old"]) == []


def test_named_in_vain() -> None:
    """A rollback names nothing that is as it was."""
    assert named_in_vain(tree(), tree(), [f"{DEST}/old"]) != []
    assert named_in_vain(tree(), tree(**{"old": Item(b"new", "9")}), [f"{DEST}/old"]) == []
    assert named_in_vain(tree(), tree(**{"old": None}), [f"{DEST}/old"]) == []
