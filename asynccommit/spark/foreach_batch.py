"""Write a batch of ``foreachBatch`` once, however often Spark runs it."""

from __future__ import annotations

from typing import Annotated, Any

from asynccommit.commit.job.success import JOB_KEY
from asynccommit.errors import OptionError
from asynccommit.options.checked import PATH, checked
from asynccommit.spark.stream_reports import job_of

_QUERY = "sql.streaming.queryId"
_UNFINISHED = "asynccommit.on.unfinished"

_TABLES: dict[str, set[str]] = {}
"""Id of a query -> the paths of the tables that its batches were written to."""


def tables_of(query: str) -> list[str]:
    """Return the paths of the tables that a query wrote batches to."""
    return sorted(_TABLES.get(query, ()))


@checked
def write_batch(writer: Any, path: Annotated[str, PATH], batch_id: int, *, name: str = "") -> bool:
    """Write a batch to a table, unless an earlier run of the batch did.

    A driver that dies after the write and before the checkpoint runs the batch again. The query's
    id and the number of the batch are the job's key, so that the second run finds that it is done;
    a commit that was interrupted is finished::

        def save(batch, batch_id):
            write_batch(batch.write.mode("append").partitionBy("day"), "flights", batch_id)


        stream.writeStream.foreachBatch(save).option("checkpointLocation", "checkpoint").start()

    The table remembers the last hundred keys. Whoever else writes there must not write more often
    than that between two runs of a batch.

    Args:
        writer: what ``batch.write`` returns, with its mode and format set.
        path: the path of the table.
        batch_id: the number that Spark gives to the function.
        name: tells the writes of one batch to one table apart.

    Returns whether this call wrote.

    Raises:
        OptionError: this is not called by ``foreachBatch``, or the session is not configured.
    """
    from asynccommit.spark.sessions import is_active

    session = writer._spark
    if not is_active(session):
        raise OptionError(
            "write_batch is for a session that asynccommit.spark.configure() was given: nothing "
            "else remembers which batches are written"
        )
    query = session.sparkContext.getLocalProperty(_QUERY)
    if query is None:
        raise OptionError("write_batch is called in the function that foreachBatch gets")
    key = job_of(batch_id, query) + (f": {name}" if name else "")
    _TABLES.setdefault(query, set()).add(path)
    try:
        writer.option(JOB_KEY, key).option(_UNFINISHED, "resume").save(path)
    except Exception as error:
        if f"the work of {key!r} was done before" not in str(error):
            raise
        return False
    return True
