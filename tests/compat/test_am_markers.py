"""Hadoop's application master and the markers: what it does with its own, and with ours.

``MRAppMaster`` is not among PySpark's jars; Maven fetches it once.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from itertools import product
from pathlib import Path

import pytest

from asynccommit.errors import CommitError, CommitUnknownError
from asynccommit.mapreduce.commit_window import Heartbeat
from asynccommit.mapreduce.committer import CommitMarkers
from asynccommit.mapreduce.job_files import JobConf, decode_job_xml
from asynccommit.mapreduce.markers import (
    FAIL,
    STARTED,
    SUCCESS,
    Action,
    Markers,
    later_start,
    sign_of_life,
    start_up,
)
from asynccommit.mapreduce.staging import StagedJob, read_staging
from asynccommit.runtime.host import Host
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.urls import Address
from tests.support.am_hadoop import (
    JOB,
    job_configuration,
    start,
    start_app_master,
    user_of,
    why_not,
)
from tests.support.hadoop import Committer, Hadoop

pytestmark = pytest.mark.jvm

HOST = Host(now=lambda: 0.0, new_id=lambda: "id", rng=random.Random(0), name="node-1", user="alice")


@pytest.fixture(scope="module")
def master() -> Iterator[Hadoop]:
    """Run one JVM with the application master; skips where there is none."""
    if reason := why_not():
        pytest.skip(reason)
    with start_app_master() as started:
        yield started


def staging(hadoop: Hadoop, root: Path, files: Mapping[str, bytes]) -> Path:
    """Make the staging directory of the job."""
    place = root / user_of(hadoop) / ".staging" / JOB
    place.mkdir(parents=True)
    for name, data in files.items():
        (place / name).write_bytes(data)
    return place


def test_where_the_markers_are(hadoop: Hadoop, tmp_path: Path) -> None:
    """The names and places of the three are Hadoop's."""
    job = hadoop.new("org.apache.hadoop.mapreduce.JobID", "1700000000000", 7)
    known = hadoop.java("org.apache.hadoop.mapreduce.TypeConverter").toYarn(job)
    names = hadoop.java("org.apache.hadoop.mapreduce.v2.util.MRApps")
    conf = hadoop.configuration({})
    found = [
        str(ask(conf, "alice", known).toString())
        for ask in (
            names.getStartJobCommitFile,
            names.getEndJobCommitSuccessFile,
            names.getEndJobCommitFailureFile,
        )
    ]

    place = f"/tmp/hadoop-yarn/staging/alice/.staging/{JOB}"
    assert found == [f"{place}/{name}" for name in (STARTED, SUCCESS, FAIL)]


@pytest.mark.parametrize("version", ["1", "2"])
def test_the_table_is_hadoops(master: Hadoop, tmp_path: Path, version: str) -> None:
    """Scenario 49: in every state of the markers Hadoop's application master does what the table
    says."""
    for number, there in enumerate(product([False, True], repeat=3)):
        root = tmp_path / str(number)
        names = zip((STARTED, SUCCESS, FAIL), there, strict=True)
        staging(master, root, {name: b"" for name, is_there in names if is_there})
        done = start(master, job_configuration(master, root, version))
        said = start_up(Markers(True, *there), repeatable=version == "2")

        assert (done.action, done.is_last) == (said, said.is_last), there


def test_a_staging_area_that_is_missing(master: Hadoop, tmp_path: Path) -> None:
    """Scenario 49: without the user's directory it is an error; without the job's own nobody
    notices yet."""
    conf = job_configuration(master, tmp_path, "2")
    missing = start(master, conf)
    (tmp_path / user_of(master) / ".staging").mkdir(parents=True)

    assert missing.action is start_up(Markers(staging=False), repeatable=True) is Action.ERROR
    assert "Staging dir does not exist" in missing.said
    assert start(master, conf).action is Action.RUN


# --- ours ---------------------------------------------------------------------------------------


def commit(place: Path, error: Exception | None = None, *, repeatable: bool) -> None:
    """Commit the job by our rules; ``error`` is what becomes of it."""

    async def run() -> None:
        store, heartbeat = LocalStore(), Heartbeat(HOST.clock)
        heartbeat.beat()
        am = CommitMarkers(
            store,
            Address("file", "", str(place)),
            JOB,
            epoch=1,
            host=HOST,
            heartbeat=heartbeat,
        )

        async def work(check: object) -> str:
            if error is not None:
                raise error
            return "sha256:00"

        try:
            await am.commit(work, repeatable=repeatable)
        finally:
            await store.aclose()

    asyncio.run(run())


@pytest.mark.parametrize("version", ["1", "2"])
def test_hadoop_goes_by_our_markers(master: Hadoop, tmp_path: Path, version: str) -> None:
    """A commit of ours that has ended, failed or been cut short is to Hadoop what it is to us."""
    again = version == "2"
    ends: dict[Action, Exception | None] = {
        Action.SUCCEEDED: None,
        Action.FAILED: ValueError("disk full"),
        Action.REPEAT if again else Action.ERROR: CommitUnknownError(JOB, "x", ()),
    }
    for action, error in ends.items():
        place = staging(master, tmp_path / action, {})
        with pytest.raises(type(error)) if error else nullcontext():
            commit(place, error, repeatable=again)
        assert (place / STARTED).stat().st_size > 0
        done = start(master, job_configuration(master, tmp_path / action, version))

        assert done.action is action


def test_what_else_ours_leave_is_nothing_to_hadoop(master: Hadoop, tmp_path: Path) -> None:
    """Starts of later owners and heartbeats neither keep it from running nor make it do so."""
    files = {later_start(2): b"{}", sign_of_life(2, 7): b"", f"{STARTED}.id": b""}
    staging(master, tmp_path / "run", files)
    staging(master, tmp_path / "done", {**files, STARTED: b"{}", SUCCESS: b"{}"})
    said = [
        start(master, job_configuration(master, tmp_path / name, "1")).action
        for name in ("run", "done")
    ]

    assert said == [Action.RUN, Action.SUCCEEDED]


def test_ours_goes_by_hadoops_markers(tmp_path: Path) -> None:
    """What an application master of Hadoop's has begun, ours does not commit."""
    (tmp_path / STARTED).touch()
    with pytest.raises(CommitError, match="an application master of Hadoop is committing it"):
        commit(tmp_path, repeatable=True)

    assert [path.name for path in tmp_path.iterdir()] == [STARTED]


# --- what a job's configuration says ----------------------------------------------------------


def test_the_reader_says_what_hadoop_does(master: Hadoop, tmp_path: Path) -> None:
    """Of a real job.xml the reader knows the committer, and so what the application master does."""
    for version, action in (("1", Action.ERROR), ("2", Action.REPEAT)):
        root = tmp_path / version
        place = staging(master, root, {STARTED: b""})
        conf = job_configuration(master, root, version)
        out = master.new("java.io.FileOutputStream", str(place / "job.xml"))
        conf.writeXml(out)
        out.close()
        [job] = asyncio.run(_read(root))
        done = start(master, conf)

        assert job.conf == JobConf(
            "nightly load", f"file:{root}/out", f"FileOutputCommitter v{version}", version == "2"
        )
        assert list(job.would) == [done.action] == [action]


@pytest.mark.parametrize("kind, known", [("v1", False), ("v2", True), ("manifest", False)])
def test_whose_commit_may_be_repeated(
    hadoop: Hadoop, tmp_path: Path, kind: Committer, known: bool
) -> None:
    """What is read from the configuration is what Hadoop's committer says of itself."""
    job = hadoop.job(tmp_path / "out", "1", committer=kind)
    context = job.task_context(0, 0)
    committer = job.make_committer(context)
    conf = context.getConfiguration()
    conf.set("mapred.mapper.new-api", "true")
    conf.set("mapreduce.job.reduces", "0")
    out = hadoop.new("java.io.ByteArrayOutputStream")
    conf.writeXml(out)

    assert bool(committer.isCommitJobRepeatable(context)) is known
    assert decode_job_xml(bytes(out.toByteArray()), "job.xml").repeatable is known


async def _read(root: Path) -> list[StagedJob]:
    store = LocalStore()
    try:
        return list((await read_staging(store, Address("file", "", str(root)), HOST)).jobs)
    finally:
        await store.aclose()
