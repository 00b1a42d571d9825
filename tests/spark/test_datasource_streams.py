"""Micro-batches on every kind of store: published once, listed once, whatever comes in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from asynccommit.engine import submit
from asynccommit.errors import OptionError, SinkLogForeignError
from asynccommit.formats.sink_log import decode_batch
from asynccommit.spark.source import jobs, streams
from asynccommit.spark.source.jobs import SourceJob
from asynccommit.spark.source.options import SourceOptions
from asynccommit.spark.source.streams import BatchPart, batch_tag, stream_job
from asynccommit.spark.source.tasks import Attempt, run_task
from tests.support.source_places import BATCH, ROWS, Place, adls, gcs, ids, moto_url, place

__all__ = ["adls", "gcs", "moto_url", "place"]

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
    tag = batch_tag(query, batch)
    written = run_task(job, options(place), ROWS, Attempt(0, number), tag, [BATCH])
    return BatchPart.from_json(BatchPart(job.job_id, query, batch, written).to_json())


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


def test_batch_that_was_published_and_not_listed(place: Place) -> None:
    """The next run of a batch replaces the files of one that died before they were listed.

    Surprise 9: a commit may die half-way, and abort deletes nothing that is published.
    """
    first = job_of(place, "a")
    message = part(first, place, 0)
    submit(jobs.commit(first, [message.written.commit]))
    chosen = options(place)
    submit(streams.abort(stream_job(place.url, chosen, "x"), chosen, [message], running=False))
    published = own(place)

    commit(place, 0, [part(job_of(place, "b"), place, 0, number=2)])

    assert len(published) == 1
    assert sorted(own(place)) == sorted(published)
    assert listed(place) == sorted(published)
    assert place.uploads() == 0


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
    with pytest.raises(OptionError, match="cannot be read"):
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
