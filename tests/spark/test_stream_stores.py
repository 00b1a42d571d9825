"""Spark's streaming file sink on each store: formats, triggers, tasks that fail, other queries.

One driver program runs all queries of a store, because its Hadoop client must be there when Spark
starts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.support.spark import run_script
from tests.support.stream_places import PLACES

pytestmark = [
    pytest.mark.every(3, 1),
    pytest.mark.spark,
    pytest.mark.full,
    pytest.mark.timeout(900),
]

FORMS = ("parquet", "orc", "csv", "json", "text")
TRIGGERS: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "processingTime": {"processingTime": "50 milliseconds"},
    "once": {"once": True},
    "availableNow": {"availableNow": True},
}
SCRIPT = """
import json
import time

given = json.loads((scratch / "given.json").read_text())
made = builder(scratch).config("spark.jars", ",".join(given["jars"]))
for key, value in given["conf"].items():
    made.config(f"spark.hadoop.{key}", value)
spark = configure(made, streams=True).getOrCreate()
told = {}


def put(name, *rows):
    folder = scratch / "sources" / name
    folder.mkdir(parents=True, exist_ok=True)
    text = "\\n".join(json.dumps({"id": row, "p": row % 2}) for row in rows)
    (folder / f"{len(list(folder.iterdir())):05d}.json").write_text(text)


def start(name, form="parquet", partitions=True, trigger={"availableNow": True}, does=None, **more):
    source = spark.readStream.schema("id long, p int").option("maxFilesPerTrigger", 1)
    frame = source.json(f"file:{scratch}/sources/{name}").repartition(2)
    if form == "text":
        frame = frame.selectExpr("cast(id as string) as value")
    frame = frame.selectExpr(*does) if does else frame
    writer = frame.writeStream.format(form).queryName(name)
    if trigger:
        writer = writer.trigger(**trigger)
    if partitions and form != "text":
        writer = writer.partitionBy("p")
    checkpoint = more.get("checkpoint", name)
    writer = writer.option("checkpointLocation", f"file:{scratch}/checkpoints/{checkpoint}")
    return writer.start(f"{given['root']}/{name}")


def see(name, form="parquet"):
    path = spark._jvm.org.apache.hadoop.fs.Path(f"{given['root']}/{name}")
    fs = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    files, each = [], fs.listFiles(path, True)
    while each.hasNext():
        files.append(each.next().getPath().getName())
    frame = spark.read.format(form).load(str(path))
    column = "value" if form == "text" else "_c0" if form == "csv" else "id"
    return {
        "rows": sorted(int(row[0]) for row in frame.select(column).collect()),
        "listed": sorted(one.rpartition("/")[2] for one in frame.inputFiles()),
        "files": sorted(one for one in files if one.startswith("part-")),
    }


def run(name, **options):
    query = start(name, **options)
    if options.get("trigger", {"availableNow": True}).keys() & {"availableNow", "once"}:
        assert query.awaitTermination(100)
    else:
        query.processAllAvailable()
        query.stop()
        query.awaitTermination()
    return query


for form in given["forms"]:
    for partitions in (True, False) if form != "text" else (False,):
        name = f"{form}-{partitions}"
        for number in range(2):
            put(name, *range(number * 4, number * 4 + 4))
            run(name, form=form, partitions=partitions)
        told[name] = see(name, form)
for trigger, said in given["triggers"].items():
    for number in range(2):
        put(trigger, number * 2, number * 2 + 1)
        run(trigger, trigger=said)
    told[trigger] = see(trigger)

put("failed", 0, 1)
run("failed")
put("failed", *range(2, 40))
try:
    run("failed", does=["if(id < 30, id, cast(raise_error('boom') as long)) as id", "p"])
except Exception as error:
    told["failure"] = str(error)
while spark.sparkContext.statusTracker().getActiveStageIds():
    time.sleep(0.1)
time.sleep(1)
told["after"] = see("failed")
try:
    run("failed", checkpoint="other")
except Exception as error:
    told["second"] = str(error)
run("failed")
told["failed"] = see("failed")
try:
    rate = spark.readStream.format("rate").load().writeStream.format("parquet")
    rate = rate.option("checkpointLocation", f"file:{scratch}/checkpoints/continuous")
    query = rate.trigger(continuous="1 second").start(f"{given['root']}/continuous")
    query.awaitTermination(60)
except Exception as error:
    told["continuous"] = str(error)
(scratch / "told.json").write_text(json.dumps(told))
spark.stop()
"""


@pytest.fixture(scope="module", params=PLACES)
def told(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, Any]]:
    """Run the driver program on a store; skips where there is no client for it."""
    scratch = tmp_path_factory.mktemp(request.param)
    with PLACES[request.param](scratch) as place:
        given = {"root": place.root, "jars": list(place.jars), "conf": dict(place.conf)}
        given |= {"forms": FORMS, "triggers": TRIGGERS}
        (scratch / "given.json").write_text(json.dumps(given))
        done = run_script(scratch, SCRIPT, timeout=850)
        assert done.returncode == 0, done.stderr[-4000:]
        yield json.loads((scratch / "told.json").read_text())


@pytest.mark.parametrize("partitions", [True, False])
@pytest.mark.parametrize("form", FORMS)
def test_format(told: Mapping[str, Any], form: str, partitions: bool) -> None:
    """Two starts of a query write each row once, and nothing but what the log lists."""
    if form == "text" and partitions:
        pytest.skip("text has no column besides the partitions")
    seen = told[f"{form}-{partitions}"]

    assert seen["rows"] == list(range(8))
    assert seen["files"] == seen["listed"]


@pytest.mark.parametrize("trigger", TRIGGERS)
def test_trigger(told: Mapping[str, Any], trigger: str) -> None:
    """Each trigger that Spark's sink has writes each row once."""
    assert told[trigger]["rows"] == [0, 1, 2, 3]
    assert told[trigger]["files"] == told[trigger]["listed"]


def test_continuous_trigger(told: Mapping[str, Any]) -> None:
    """Spark itself refuses it for file sinks, before anything of ours runs."""
    assert "continuous" in told["continuous"].lower()


def test_batch_that_fails(told: Mapping[str, Any]) -> None:
    """No file of a batch whose task failed is there once its tasks have ended, and its next run
    writes the rows."""
    assert "boom" in told["failure"]
    assert told["after"]["rows"] == [0, 1]
    assert told["after"]["files"] == told["after"]["listed"]
    assert told["failed"]["rows"] == list(range(40))
    assert told["failed"]["files"] == told["failed"]["listed"]


def test_second_query(told: Mapping[str, Any]) -> None:
    """A query with another checkpoint is refused, with the name of the first and the remedy."""
    assert "belongs to query 'failed'" in told["second"]
    assert "asynccommit sink-log adopt" in told["second"]
