"""Micro-batches on every kind of store: published once, listed once, whatever comes in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from asynccommit.errors import ForeignCommitError, OptionError, SinkLogForeignError, SinkLogGapError
from asynccommit.runtime.loop_thread import submit
from asynccommit.spark.datasource import jobs, streams
from asynccommit.spark.datasource.jobs import SourceJob
from asynccommit.spark.datasource.options import SourceOptions
from asynccommit.spark.datasource.streams import BatchPart, batch_tag, stream_job
from asynccommit.spark.datasource.tasks import SparkAttempt, run_task
from asynccommit.streaming.entries import decode_batch
from asynccommit.streaming.log import Added, SinkLog
from tests.support.commits import Dies, open_site
from tests.support.permissions import GIVES_AWAY, give_away
from tests.support.source_places import BATCH, ROWS, Place, adls, gcs, ids, moto_url, place

__all__ = ["adls", "gcs", "moto_url", "place"]
pytestmark = pytest.mark.rotate("place", keep=2)

LOG = "_spark_metadata"


def options(place: Place, checkpoint: str = "/checkpoint") -> SourceOptions:
    """Return the options of a stream."""
    return SourceOptions(place.url, checkpoint=checkpoint, storage=place.storage)


def job_of(place: Place, token: str) -> SourceJob:
    """Return the job of one run of a batch, set up as by the writer for its tasks."""
    chosen = options(place)
    return submit(streams.set_up(stream_job(place.url, chosen, token), chosen))


def part(job: SourceJob, place: Place, batch: int, query: str = "q", number: int = 1) -> BatchPart:
    """Run a task of a batch; its message has been what Spark carries."""
    return parts(job, place, batch, 1, query, number)[0]


def parts(
    job: SourceJob, place: Place, batch: int, tasks: int, query: str = "q", number: int = 1
) -> list[BatchPart]:
    """Run all tasks of a batch, each with as many of its rows."""
    tag, some = batch_tag(query, batch, job.job_id), BATCH.num_rows // tasks
    found = []
    for task in range(tasks):
        attempt, rows = SparkAttempt(task, number + task), BATCH.slice(task * some, some)
        written = run_task(job, options(place), ROWS, attempt, tag, [rows])
        text = BatchPart(job.job_id, query, batch, written).to_json()
        found.append(BatchPart.from_json(text))
    return found


def commit(place: Place, batch: int, parts: Sequence[BatchPart], token: str = "anew") -> None:
    """Commit a batch as the writer does that Spark makes for it."""
    chosen = options(place)
    submit(streams.commit(stream_job(place.url, chosen, token), chosen, batch, parts))


def listed(place: Place) -> list[str]:
    """Return the names of the files that the log lists, with what is twice twice."""
    files = place.files()
    found = [name for name in files if name.startswith(f"{LOG}/") and "/." not in name]
    return sorted(
        file.path.rpartition("/")[2]
        for name in found
        for file, _ in decode_batch(files[name], name)
    )


def own(place: Place) -> dict[str, bytes]:
    """Return the files of the table itself and of jobs, those of the log left out."""
    return {name: data for name, data in place.files().items() if not name.startswith(LOG)}


def test_batch_that_comes_again(place: Place) -> None:
    """A batch that the log has is not added again, and its second run leaves nothing.

    Surprises 11 and 12: its commit is called again if Spark died before it had noted it.
    """
    commit(place, 0, [part(job_of(place, "a"), place, 0)])
    before = place.files()

    commit(place, 0, [part(job_of(place, "b"), place, 0, number=2)])

    assert place.files() == before
    assert listed(place) == sorted(own(place))
    assert ids(before) == list(range(100))
    assert place.uploads() == 0


@pytest.mark.rotate("tasks")
@pytest.mark.parametrize("tasks", [1, 3])
def test_batch_that_was_published_and_not_listed(place: Place, tasks: int) -> None:
    """The next run of a batch deletes the files of one that died before they were listed.

    Surprise 9: a commit may die half-way, and abort deletes nothing that is published. The next
    run may have fewer tasks.
    """
    first = job_of(place, "a")
    messages = parts(first, place, 0, tasks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SinkLog, "add", _dies)
        with pytest.raises(ConnectionError):
            commit(place, 0, messages)
    chosen = options(place)
    submit(streams.abort(stream_job(place.url, chosen, "x"), chosen, messages, running=False))
    published = own(place)

    commit(place, 0, [part(job_of(place, "b"), place, 0, number=9)])

    assert len(published) == tasks
    assert sorted(own(place)) == listed(place)
    assert ids(place.files()) == list(range(100))
    assert place.uploads() == 0
    assert not [name for name in place.files() if name.startswith(f"{LOG}/.")]


async def _dies(*given: Any, **more: Any) -> None:
    raise ConnectionError("the process dies here")


def test_runs_of_a_batch_that_overlap(place: Place) -> None:
    """A run that comes late replaces no file that the log lists, and what it published goes.

    The cluster may start a query again that it only believes to be dead.
    """
    quick = parts(job_of(place, "a"), place, 0, 4)
    # As of two programs: neither ends the jobs of the other.
    late = parts(submit(jobs.set_up(stream_job(place.url, options(place), "b"))), place, 0, 2)
    add = SinkLog.add

    async def overtaken(self: SinkLog, *given: Any, **more: Any) -> Added:
        patch.setattr(SinkLog, "add", add)
        chosen = options(place)
        await streams.commit(stream_job(place.url, chosen, "c"), chosen, 0, quick)
        return await add(self, *given, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SinkLog, "add", overtaken)
        commit(place, 0, late)

    assert len(listed(place)) == 4
    assert sorted(own(place)) == listed(place)
    assert ids(place.files()) == list(range(100))


def test_files_of_the_first_batch_before_it_is_listed(place: Place) -> None:
    """Where readers look for a log there is one before any file is published."""
    messages = parts(job_of(place, "a"), place, 0, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "_publish", _dies)
        with pytest.raises(ConnectionError):
            commit(place, 0, messages)

    assert [name for name in place.files() if name.startswith(f"{LOG}/.0.")]


def test_batch_that_cannot_follow(place: Place) -> None:
    """A batch after a gap of the log is refused before any file of it is published."""
    message = part(job_of(place, "a"), place, 3)

    with pytest.raises(SinkLogGapError, match="begins with batch 3"):
        commit(place, 3, [message])

    name = message.written.files[0][0]
    assert name not in place.files()


def test_run_that_was_killed(place: Place) -> None:
    """What a run left that nobody aborted is removed when the next one begins."""
    part(job_of(place, "a"), place, 0)

    job = job_of(place, "b")
    commit(place, 0, [part(job, place, 0, number=2)])

    assert sorted(own(place)) == listed(place)
    assert place.uploads() == 0


def test_abort_without_messages(place: Place) -> None:
    """An abort that is told of no task finds the jobs of its query by the place of its checkpoint.

    Surprise 3: the messages of all tasks are missing when the first of them fails.
    """
    part(job_of(place, "a"), place, 0)
    other = replace(options(place), checkpoint="/another")
    kept = submit(streams.set_up(stream_job(place.url, other, "x"), other))

    chosen = options(place)
    submit(streams.abort(stream_job(place.url, chosen, "y"), chosen, [], running=False))

    part(kept, place, 0)
    submit(jobs.abort(kept, running=False))
    assert place.files() == {}
    assert place.uploads() == 0


def test_batch_of_another_query(place: Place) -> None:
    """A batch number that the log has of another query is refused, and nothing is lost."""
    commit(place, 0, [part(job_of(place, "a"), place, 0)])

    with pytest.raises(SinkLogForeignError, match="batch 0"):
        commit(place, 0, [part(job_of(place, "b"), place, 0, query="another", number=2)])

    assert len(listed(place)) == 1


def test_messages_of_different_runs() -> None:
    """Messages that cannot belong together, or cannot be read, are refused."""
    job = SourceJob("/t", "j", stream_job("/t", SourceOptions("/t"), "a").options, {})
    place = Place("/nowhere", {})
    with pytest.raises(OptionError, match="sent an invalid message"):
        BatchPart.from_json("{}")
    text = BatchPart.from_json  # a task that says another batch than the one to be committed
    message = text(
        '{"job":"j","query":"q","batch":7,"files":[],"task":{"taskId":"t","attemptId":"a",'
        '"manifest":"file:/m","digest":"sha256:0","files":0,"bytes":0}}'
    )

    with pytest.raises(OptionError, match="batch 7"):
        submit(streams.commit(job, options(place), 0, [message]))
    with pytest.raises(OptionError, match="different runs"):
        submit(streams.commit(job, options(place), 7, [message, replace(message, job_id="k")]))


@GIVES_AWAY
async def test_commit_of_another_user(tmp_path: Path) -> None:
    """A commit under the id of an earlier run is not undone for a user who has not begun it."""
    site = await open_site("local", tmp_path / "root")
    chosen = SourceOptions(site.path("/table"), checkpoint="/checkpoint")
    job = stream_job(site.path("/table"), chosen, "a")
    await site.cut({"p=1/f": "1"}, Dies("rename", "tasks/"), job_id=job.job_id)
    give_away(Path(site.path("/table/_temporary")) / job.job_id)
    before = site.tree()
    with pytest.raises(ForeignCommitError):
        await streams.sweep(job, chosen)

    assert site.tree() == before
    await site.close()
