"""Staging directories that MapReduce jobs left: what each job's state is, and what comes next."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from asynccommit.errors import DeniedError, NotFoundError
from asynccommit.formats.commit_record import Owner
from asynccommit.mapreduce.job_files import ALGORITHM, NAME, OUTPUT
from asynccommit.mapreduce.markers import (
    FAIL,
    STARTED,
    SUCCESS,
    Action,
    End,
    Start,
    encode_end,
    encode_start,
    later_start,
)
from asynccommit.mapreduce.staging import Staging, StagingState, read_staging
from asynccommit.mapreduce.text import next_steps, would_do
from asynccommit.runtime.host import Host
from asynccommit.stores.base import Store
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.urls import Address
from tests.mapreduce.test_job_files import job_xml
from tests.support.faults import Fault, Faults

JOB = "job_1700000000000_0007"
OWNER = Owner("owner-1", "node-3", "alice", "17.boot")
START = Start(JOB, 1, OWNER, 60.0, 1_000, True)
END = End(JOB, 1, OWNER, 2_000, "sha256:00")
HOST = Host(now=lambda: 0.0, new_id=lambda: "id", rng=random.Random(0))
LATE = replace(HOST, now=lambda: 1e11)


def leave(root: Path, files: Mapping[str, bytes], job: str = JOB, user: str = "alice") -> Path:
    """Leave the staging directory of a job; return it."""
    place = root / user / ".staging" / job
    place.mkdir(parents=True)
    for name, data in files.items():
        (place / name).write_bytes(data)
    return place


async def read(place: Path, host: Host = HOST, store: Store | None = None) -> Staging:
    """Read what is there."""
    local = LocalStore()
    try:
        return await read_staging(store or local, Address("file", "", str(place)), host)
    finally:
        await local.aclose()


async def test_the_places_that_can_be_read(tmp_path: Path) -> None:
    """A root, a user's directory, the staging in it, and one job: each shows what is below it."""
    leave(tmp_path, {})
    leave(tmp_path, {}, "job_1700000000000_0008")
    leave(tmp_path, {}, user="bob")
    (tmp_path / "carol").mkdir()
    (tmp_path / "alice/.staging/job_1.old").mkdir()
    places = (tmp_path, tmp_path / "alice", tmp_path / "alice/.staging")
    found = [[(job.user, job.job_id[-1]) for job in (await read(_)).jobs] for _ in places]

    alice = [("alice", "7"), ("alice", "8")]
    assert found == [[*alice, ("bob", "7")], alice, alice]
    [job] = (await read(tmp_path / "alice/.staging" / JOB)).jobs
    assert (job.user, job.job_id, job.state) == ("alice", JOB, StagingState.RUNNING)


@pytest.mark.parametrize("name", ["none", f"alice/.staging/{JOB}", "bob/.staging"])
async def test_nothing_there(tmp_path: Path, name: str) -> None:
    """A place that is not there is an error; an empty one is said to be so."""
    with pytest.raises(NotFoundError):
        await read(tmp_path / name)
    found = await read(tmp_path)
    assert found.jobs == []
    assert found.warnings == [f"file:{tmp_path} holds no directory of a user"]


STATES = {
    (False, False, False): (StagingState.RUNNING, [Action.RUN]),
    (False, True, False): (StagingState.STRAY, [Action.RUN]),
    (False, False, True): (StagingState.STRAY, [Action.RUN]),
    (False, True, True): (StagingState.STRAY, [Action.RUN]),
    (True, False, False): (StagingState.OPEN, [Action.REPEAT, Action.ERROR]),
    (True, True, False): (StagingState.COMMITTED, [Action.SUCCEEDED]),
    (True, False, True): (StagingState.FAILED, [Action.FAILED]),
    (True, True, True): (StagingState.COMMITTED, [Action.SUCCEEDED]),
}


@pytest.mark.parametrize("there", list(product([False, True], repeat=3)), ids=str)
async def test_what_hadoop_left(tmp_path: Path, there: tuple[bool, bool, bool]) -> None:
    """Every state of Hadoop's markers has a name, what comes next, and something to do."""
    names = (STARTED, SUCCESS, FAIL)
    place = leave(tmp_path, {name: b"" for name, is_there in zip(names, there, strict=True)
                             if is_there})  # fmt: skip
    [job] = (await read(place)).jobs

    assert (job.state, list(job.would)) == STATES[there]
    assert next_steps(job)[-1].command == "yarn application -status application_1700000000000_0007"
    assert would_do(job)


@pytest.mark.parametrize("version, action", [("1", Action.ERROR), ("2", Action.REPEAT)])
async def test_the_configuration_tells_what_comes(
    tmp_path: Path, version: str, action: Action
) -> None:
    """Where job.xml says which committer it is, there is one answer, and the output is named."""
    conf = {NAME: "load", OUTPUT: "hdfs://n:8020/out dir", ALGORITHM: version}
    files = {STARTED: b"", "job.xml": job_xml(conf), f"{JOB}_2.jhist": b"", "x_9.jhist": b""}
    [job] = (await read(leave(tmp_path, files))).jobs

    assert list(job.would) == [action]
    assert (job.attempts, job.conf.name) == (2, "load")
    assert "hdfs dfs -ls -R 'hdfs://n:8020/out dir'" in [_.command for _ in next_steps(job)]


OURS: tuple[tuple[dict[str, bytes], Host, StagingState, str], ...] = (
    ({STARTED: encode_start(START)}, HOST, StagingState.COMMITTING,
     "attempt 1 (alice@node-3, process 17) is committing it: leave it alone"),
    ({STARTED: encode_start(START)}, LATE, StagingState.EXPIRED, "takes it over"),
    ({STARTED: encode_start(replace(START, repeatable=False))}, LATE, StagingState.EXPIRED,
     "does not commit it again"),
    ({STARTED: encode_start(START), later_start(3): encode_start(replace(START, epoch=3))}, HOST,
     StagingState.COMMITTING, "attempt 3"),
    ({STARTED: encode_start(START), SUCCESS: encode_end(END)}, LATE,
     StagingState.COMMITTED, "complete"),
    ({STARTED: encode_start(START), FAIL: encode_end(replace(END, error="disk full"))}, LATE,
     StagingState.FAILED, "its commit failed: disk full"),
    ({STARTED: encode_start(START), later_start(3): encode_start(replace(START, epoch=3)),
      FAIL: encode_end(END)}, HOST, StagingState.COMMITTING, "attempt 3"),
)  # fmt: skip


@pytest.mark.parametrize("files, host, state, text", OURS)
async def test_what_ours_left(
    tmp_path: Path, files: Mapping[str, bytes], host: Host, state: StagingState, text: str
) -> None:
    """Ours say whose the commit is, and whether that one lives."""
    [job] = (await read(leave(tmp_path, files), host)).jobs

    assert job.state is state
    assert text in " ".join(step.says for step in next_steps(job))


@pytest.mark.parametrize(
    "files, text",
    [
        ({STARTED: b"?"}, f"{STARTED}: not valid JSON"),
        ({STARTED: encode_start(replace(START, job_id="job_1_0001"))}, "belongs to another job"),
        (
            {STARTED: encode_start(START), later_start(3): encode_start(START)},
            "is the claim of another process",
        ),
        ({STARTED: b"", FAIL: b"[1]"}, f"{FAIL}: the content is a list"),
        ({STARTED: b"x" * 2_000_000}, "more than"),
    ],
)
async def test_a_marker_that_cannot_be_read(
    tmp_path: Path, files: Mapping[str, bytes], text: str
) -> None:
    """It is named, and Hadoop, which never reads them, goes by its being there."""
    [job] = (await read(leave(tmp_path, files))).jobs

    assert job.state is StagingState.UNREADABLE
    assert text in job.problems[0]
    assert job.standing.markers.started


async def test_a_configuration_that_cannot_be_read(tmp_path: Path) -> None:
    """What job.xml does not say is not known; the state is."""
    [job] = (await read(leave(tmp_path, {"job.xml": b"<html/>", STARTED: b""}))).jobs

    assert job.state is StagingState.OPEN
    assert "not a Hadoop configuration" in job.problems[0]


async def test_what_others_may_not_see(tmp_path: Path) -> None:
    """The staging of another user is a warning, a job's directory a problem; the rest is shown."""
    leave(tmp_path, {})
    leave(tmp_path, {}, "job_1700000000000_0008")
    leave(tmp_path, {}, user="bob")
    denied = [
        Fault("list", lambda op, path: DeniedError(op, path, "not yours"), part)
        for part in ("bob/.staging", "_0008")
    ]
    local = LocalStore()
    found = await read(tmp_path, store=Wrapped(local, Faults(*denied)))
    await local.aclose()

    assert [job.state for job in found.jobs] == [StagingState.RUNNING, StagingState.UNREADABLE]
    assert [warning[-9:] for warning in found.warnings] == ["not yours"]
    assert would_do(found.jobs[1]) == "unknown"


async def test_a_job_that_ends_meanwhile(tmp_path: Path) -> None:
    """A directory that is gone since it was listed is left out."""
    leave(tmp_path, {})
    leave(tmp_path, {}, "job_1700000000000_0008")
    gone = Fault("list", lambda op, path: NotFoundError(op, path), "_0008")
    local = LocalStore()
    found = await read(tmp_path, store=Wrapped(local, Faults(gone)))
    await local.aclose()

    assert [job.job_id for job in found.jobs] == [JOB]
