"""Where jobs of uploads have their files: the paths of Hadoop's S3A committers, and ours."""

from __future__ import annotations

from dataclasses import replace

import pytest

from asynccommit.commit.layouts.uploads import Left, MagicLayout, StagingLayout
from asynccommit.errors import OptionError
from asynccommit.stores.urls import Address

DEST = Address("s3", "data", "/out/t")
MAGIC = MagicLayout(DEST, "u1")
STAGING = StagingLayout(DEST, "u1", tmp=Address("hdfs", "nn", "/tmp/staging/alice"))
TOP = "/out/t/__magic_job-u1/job-u1/00"
TMP = "/tmp/staging/alice/u1/staging-uploads/_temporary/0"


def test_magic_paths() -> None:
    """Sets, tasks and our own files are where Hadoop's magic committer looks and deletes."""
    assert MAGIC.job_dir == "/out/t/__magic_job-u1"
    assert MAGIC.pending_set("task_1") == f"{TOP}/task_1.pendingset"
    assert MAGIC.task_base("attempt_1") == f"{TOP}/tasks/attempt_1/__base"
    assert MAGIC.intent("attempt_1", 2) == f"{TOP}/tasks/attempt_1/intents/2.json"
    assert MAGIC.record == f"{TOP}/commit-record.json"
    assert MAGIC.pending == DEST
    assert MAGIC.of_attempt(3).attempt_dir.endswith("/job-u1/03")
    assert MAGIC.task_of("task_1.pendingset") == "task_1"


def test_staging_paths() -> None:
    """Sets are where Hadoop's file committer leaves them, and hidden files are ours."""
    assert STAGING.job_dir == "/tmp/staging/alice/u1"
    assert STAGING.pending_set("task_1") == f"{TMP}/task_1"
    assert STAGING.uncommitted_set("attempt_1") == f"{TMP}/_temporary/attempt_1"
    assert STAGING.intent("attempt_1", 2) == f"{TMP}/_intents/attempt_1-2.json"
    assert STAGING.record == f"{TMP}/_commit-record.json"
    assert STAGING.plan("p", 1) == f"{TMP}/_commit-plan-p-00001.json"
    assert STAGING.pending_url(STAGING.record).startswith("hdfs://nn/tmp/staging")
    assert not STAGING.is_set("_commit-record.json")
    assert not STAGING.is_set(".task_1.crc")
    assert STAGING.task_of("task_1") == "task_1"


@pytest.mark.parametrize("layout", [MAGIC, STAGING], ids=["magic", "staging"])
def test_a_commit_has_places_of_its_own(layout: MagicLayout) -> None:
    """What is copied aside, and how a commit ends, bears the commit's id."""
    one, two = replace(layout, commit="a" * 32), replace(layout, commit="b" * 32)

    assert one.aside("/out/t/p=1/f").endswith("/aside-aaaaaaaaaaaa/p=1/f")
    assert len({one.outcome, two.outcome, layout.outcome}) == 3
    assert one.aside_dir != two.aside_dir
    assert one.record == two.record


@pytest.mark.parametrize(
    "path, reserved",
    [
        ("/out/t/_SUCCESS", True),
        ("/out/t/_temporary/x", True),
        ("/out/t/__magic_job-other/x", True),
        ("/out/t/p=1/__magic/x", True),
        ("/out/t/p=1/_temporary", False),
        ("/out/t/x__magic", False),
    ],
)
def test_places_that_no_task_may_write_to(path: str, reserved: bool) -> None:
    """The marker, ``_temporary`` and every magic directory are of the committers."""
    assert MAGIC.reserves(path) is reserved


@pytest.mark.parametrize(
    "path, left",
    [
        (MAGIC.pending_set("t"), Left.SET),
        (MAGIC.of_attempt(1).pending_set("t"), Left.SET),
        (f"{MAGIC.task_base('a')}/p=1/f.pending", Left.PENDING),
        (f"{MAGIC.task_base('a')}/p=1/f", None),
        (MAGIC.intent("a", 1), Left.INTENT),
        (MAGIC.record, None),
        (f"{MAGIC.attempt_dir}/aside-1/f.pending", None),
    ],
)
def test_what_names_uploads_of_magic(path: str, left: Left | None) -> None:
    """Sets, pending files below ``__base`` and intents name uploads, and nothing else does."""
    assert MAGIC.left_at(path) is left


@pytest.mark.parametrize(
    "path, left",
    [
        (STAGING.pending_set("t"), Left.SET),
        (STAGING.uncommitted_set("a"), Left.SET),
        (STAGING.intent("a", 1), Left.INTENT),
        (STAGING.record, None),
        (f"{TMP}/.t.crc", None),
    ],
)
def test_what_names_uploads_of_staging(path: str, left: Left | None) -> None:
    """Sets, committed or not, and intents name uploads, and nothing else does."""
    assert STAGING.left_at(path) is left


def test_names_that_are_no_names() -> None:
    """Ids become names of files, and what cannot be one is refused."""
    for layout in (MAGIC, STAGING):
        with pytest.raises(OptionError):
            layout.pending_set("../x")
        with pytest.raises(OptionError):
            layout.intent("a/b", 0)
