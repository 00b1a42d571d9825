"""Requests that a jar has sent, each with the disk as it was then, and with the answer.

A driver may run for weeks with one jar while its Python is upgraded below it: only the build of the
jar, which is told with each request, is put in the place of the recorded one.
"""

from __future__ import annotations

import json
import lzma
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from asynccommit.runtime.loop_thread import submit
from asynccommit.spark import bridge, configure, heartbeat
from asynccommit.spark.bridge import Bridge
from asynccommit.spark.jars import build_id
from asynccommit.spark.sessions import register
from tests.corpus.deaths import FILES, Tree, told
from tests.corpus.images import Row, items, take
from tests.corpus.resigned import unpack
from tests.support.crashes import LocalWorld
from tests.support.spark import TASK_FAILURES, builder

FILE = FILES / "requests.xz"
BUILD = "the build of the jar"


class Asked(NamedTuple):
    """A request.

    Attributes:
        story: what the user did.
        root: the directory that stood for the disk.
        rows: what was below it, see ``tests.corpus.images``.
        request: as JSON.
        answer: as JSON.
        tree: what there was afterwards, see ``tests.corpus.deaths.told``.
    """

    story: str
    root: str
    rows: dict[str, Row]
    request: str
    answer: str
    tree: Tree


def answered(asked: Asked, root: Path) -> tuple[dict[str, Any], Tree]:
    """Answer a request by this version; return the answer, and what there is afterwards."""
    renamed = unpack(root, asked.rows, asked.root)
    request = json.loads(renamed(asked.request)) | {"build": build_id()}
    world = LocalWorld(root)
    before = items(world)
    answer = json.loads(Bridge().apply(json.dumps(request)))
    submit(heartbeat.end(bridge._key(request)))
    submit(world.aclose())
    return answer, told(before, items(world), str(root))


def same_answer(asked: Asked, answer: dict[str, Any]) -> bool:
    """Return whether an answer says what the recorded one says, whatever the words of an error."""
    facts = [dict(one) for one in (json.loads(asked.answer), answer)]
    for one in facts:
        one.pop("build", None)
        one.pop("error", None)
    return facts[0] == facts[1]


# --- the file -----------------------------------------------------------------------------------


def save(known: list[Asked]) -> None:
    """Write the requests."""
    lines = "\n".join(json.dumps(list(one)) for one in known)
    FILE.write_bytes(lzma.compress(lines.encode(), preset=9 | lzma.PRESET_EXTREME))


def load() -> list[Asked]:
    """Return the requests that were recorded."""
    lines = lzma.decompress(FILE.read_bytes()).decode().splitlines()
    return [Asked(*json.loads(line)) for line in lines]


# --- a session of Spark, whose requests are written down ----------------------------------------


def record() -> list[Asked]:
    """Let a session do what users do; return what its jar asks."""
    known: list[Asked] = []
    with tempfile.TemporaryDirectory() as top, _session(Path(top) / "spark") as spark:
        for number, (story, act) in enumerate(STORIES.items()):
            root = Path(top) / f"{number}"
            root.mkdir()
            _listen(spark, partial(_noted, known, story, root))
            act(spark, f"file:{root}/t")
    return known


def _noted(known: list[Asked], story: str, root: Path, request: str) -> str:
    world = LocalWorld(root)
    rows, before = dict(take(world).rows), items(world)
    answer = bridge.BRIDGE.apply(request)
    after = told(before, items(world), str(root))
    submit(world.aclose())
    plain = json.dumps(json.loads(request) | {"build": BUILD})
    known.append(Asked(story, str(root), rows, plain, answer, after))
    return answer


def _listen(spark: Any, answer: Callable[[str], str]) -> None:
    register(spark.sparkContext._gateway, answer)


@contextmanager
def _session(scratch: Path) -> Iterator[Any]:
    spark = configure(builder(scratch)).getOrCreate()
    yield spark
    spark.stop()


def _rows(spark: Any, partitions: int = 2) -> Any:
    return spark.range(6, numPartitions=2).selectExpr("id", f"id % {partitions} as p")


def _append(spark: Any, place: str) -> None:
    _rows(spark).write.csv(place)
    _rows(spark).write.mode("append").csv(place)


def _overwrite(spark: Any, place: str) -> None:
    for _ in range(2):
        _rows(spark).write.mode("overwrite").partitionBy("p").csv(place)


def _dynamic(spark: Any, place: str) -> None:
    _rows(spark, 3).write.partitionBy("p").csv(place)
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    _rows(spark).write.mode("overwrite").partitionBy("p").csv(place)
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "static")


def _static(spark: Any, place: str) -> None:
    spark.sql(f"create table s (id long, p long) using csv partitioned by (p) location '{place}'")
    spark.sql("insert into s select id, id % 2 from range(6)")
    spark.sql("insert overwrite s partition (p = 1) select id from range(3)")
    spark.sql(f"alter table s add partition (p = 5) location '{place}-apart'")
    spark.sql("insert into s partition (p = 5) select id from range(3)")
    spark.sql("drop table s")


def _options(spark: Any, place: str) -> None:
    spark.conf.set("spark.asynccommit.job.key", "nightly")
    spark.conf.set("spark.asynccommit.on.failure", "rollback")
    _rows(spark).write.csv(place)
    spark.conf.unset("spark.asynccommit.job.key")
    spark.conf.unset("spark.asynccommit.on.failure")


def _failing(spark: Any, place: str) -> None:
    _rows(spark).write.csv(place)
    broken = _rows(spark).selectExpr("if(id < 5, id, raise_error('broken')) as id")
    for mode in ("append", "overwrite"):
        with pytest.raises(TASK_FAILURES, match="broken"):
            broken.write.mode(mode).csv(place)


def _refused(spark: Any, place: str) -> None:
    path = Path(place.removeprefix("file:"))
    path.mkdir()
    (path / "p=1").write_text("a file in the way")
    with pytest.raises(TASK_FAILURES, match="p=1"):
        _rows(spark).write.mode("append").partitionBy("p").csv(place)


STORIES: dict[str, Callable[[Any, str], None]] = {
    "append": _append,
    "overwrite": _overwrite,
    "overwrite some partitions": _dynamic,
    "insert into partitions": _static,
    "options": _options,
    "a task fails": _failing,
    "a commit is refused": _refused,
}
