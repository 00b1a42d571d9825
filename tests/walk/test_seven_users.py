"""The first ten minutes of users without Spark, with the wrong turnings that users have taken.

Each follows the pages from an empty folder. ``test_new_user.py`` has the user of a notebook.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.support.spark import below
from tests.walk.user import User

ROOT = Path(__file__).parents[2]
_LOCAL = shutil.ignore_patterns(".git", ".venv", "build", "__pycache__", ".*_cache", ".hypothesis")

pytestmark = [pytest.mark.full, pytest.mark.slow, pytest.mark.timeout(300)]

PLAIN_READS = """
import duckdb
import polars as pl
import pyarrow.dataset as ds

from asynccommit.polars import sink_parquet

flights = pl.LazyFrame({"origin": ["JFK", "a/b", None, "LGA"] * 3, "delay": range(12)})
print(sink_parquet(flights, "flights", partition_by="origin"))
for mode in ("Overwrit", "error"):
    try:
        sink_parquet(flights, "flights", mode=mode)
    except Exception as error:
        print(type(error).__name__, error)
try:
    pl.read_parquet("flights")
except pl.exceptions.InvalidOperationError as error:
    print("_SUCCESS" in str(error))
print(pl.scan_parquet("flights", hidden_file_prefix="_").collect().height)
print(ds.dataset("flights", partitioning="hive").count_rows())
print(duckdb.sql("FROM read_parquet('flights/*=*/**/*.parquet')").count("*").fetchall())
bare = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
sink_parquet(flights, "flights", mode="Overwrite", options=bare)
print(pl.read_parquet("flights").height)
"""
DASK = """
import dask.dataframe as dd
import pandas as pd

from asynccommit.dask import to_parquet


def fail(part):
    if 5 in part.delay.values:
        raise ConnectionError("the source went away")
    return part


flights = dd.from_pandas(pd.DataFrame({"delay": range(12)}), npartitions=3)
to_parquet(flights, "flights")
failing = flights.map_partitions(fail, meta=flights)
for frame, how in (
    (flights, {"mode": "Overwrit"}),
    (flights, {"overwrite": True}),
    (failing, {"mode": "overwrite"}),
):
    try:
        to_parquet(frame, "flights", **how)
    except Exception as error:
        print(type(error).__name__, error)
print(len(dd.read_parquet("flights")), "rows")
"""
RAY = """
import ray

from asynccommit.ray import Sink

ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100 * 2**20)
sink = Sink("flights", partition_cols="origin", mode="overwrite")
rows = [{"origin": "JFK", "delay": number} for number in range(12)]
ray.data.from_items(rows, override_num_blocks=3).write_datasink(sink)
print(sink.report)
"""
SERVED = """
import logging

from fastapi.testclient import TestClient
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from service import app

import asynccommit.otel

logging.basicConfig(level="INFO", format="%(asynccommit_destination)s", filename="log")
logging.getLogger("httpx").propagate = False
spans, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
asynccommit.otel.instrument(tracer_provider=provider)
with TestClient(app) as client:
    for number in range(2):
        client.post("/uploads", content=b"x", headers={"Idempotency-Key": f"new {number}"})
finished = spans.get_finished_spans()
print([span.name for span in finished if span.parent is None], len(finished) > 20)
"""
ENDLESS = """
import asyncio

from asynccommit import open_job


async def main():
    async with open_job("endless") as job, job.task(0) as task:
        await task.put("part-0.csv", b"21.5")
        await asyncio.sleep(600)


asyncio.run(main())
"""
DIES = """
import os
import signal
from pathlib import Path

from asynccommit import Progress, sync


def die(progress: Progress) -> None:
    if progress.stage == "job_stage_rename_files" and progress.total:
        os.kill(os.getpid(), signal.SIGKILL)


with sync.open_job("flights", job_id="nightly", on_progress=die) as job, job.task(0) as task:
    for part in range(60):
        Path(task.path(f"part-{part}.csv")).write_text("AA,JFK")
"""
OWN_TESTS = """
from asynccommit import sync
from asynccommit.testing import Fault


def test_a_job(adls_emulator_thread):
    adls_emulator_thread.do(lambda it: it.model.create_filesystem("data"))
    storage = {"connection_string": adls_emulator_thread.connection_string}
    with sync.open_job("abfs://data/flights", storage_options=storage) as job, job.task(0) as task:
        task.put("part-0.csv", b"AA,JFK")


def test_a_fault_that_is_misspelt(adls_emulator_thread):
    adls_emulator_thread.do(lambda it: it.weather.add(Fault("cut", op="renam")))


def test_a_bucket(gcs_emulator_thread):
    gcs_emulator_thread.do(lambda it: it.model.create_bucket("data"))
"""
DOUBLED = '    OURS + "require.files": ("require_files", values.boolean),\n'


def test_a_user_of_polars_duckdb_and_pyarrow(user: User) -> None:
    """One line in place of a writer; plain reads of one layout, and modes by every name."""
    for page, first, second in (
        ("guide-polars.md", "sink_parquet(flights, table, p", "sink_csv(flights, Path"),
        ("guide-duckdb.md", 'copy(connection, "FROM', 'compression="zstd")'),
        ("guide-arrow.md", "write_dataset(flights, table, p", 'ds.field("delay") > 5'),
    ):
        user.at(page).follows(page, first, second)

    told = user.runs(PLAIN_READS)

    assert " committed 4 files, " in told[0]
    assert told[1].split()[0] == "destination"
    assert told[-7].startswith("OptionError the mode is 'Overwrit': expected one of append, overwr")
    assert "flights: the destination is not empty, and the mode is fail" in told[-6]
    assert told[-5:] == ["True", "12", "12", "[(12,)]", "12"]


@pytest.mark.every(3)
def test_a_user_of_dask_and_ray(user: User) -> None:
    """Tables as in the guides; a task that fails changes nothing, and so does a wrong word."""
    dask = user.at("dask")
    dask.follows("guide-dask.md", 'to_parquet(flights, table, partition_on="origin", write_i')

    mode, argument, failed, rows = user.runs(DASK)

    assert mode.startswith("OptionError the mode is 'Overwrit': expected one of append, overwrite")
    assert argument == "OptionError overwrite is not an argument here: use mode='overwrite'"
    assert (failed, rows) == ("ConnectionError the source went away", "12 rows")
    told = user.runs(RAY)
    assert " committed 3 files, " in told[0]
    assert not [path for path in below(user.folder / "flights") if "_temporary" in path.parts]


def test_a_user_with_a_service(user: User) -> None:
    """The first program, then a service: each job a trace, its log by job; Ctrl-C leaves none."""
    user.follows("README.md", "async with open_job(")
    user.follows("recipes.md", "async def upload(", "response.json()")

    assert user.runs(SERVED)[-1] == "['asynccommit job', 'asynccommit job'] True"
    log = (user.folder / "log").read_text().splitlines()
    assert set(log) == {f"file:{user.folder}/uploads"}
    user.saves("endless.py", ENDLESS)
    table = user.folder / "endless"
    stopped = user.interrupts(
        "python endless.py", lambda: any("part-0" in path.name for path in below(table))
    )
    assert stopped.err.rstrip().endswith("KeyboardInterrupt")
    assert not table.exists()


def test_an_operator(user: User) -> None:
    """A commit that died: seen, resumed, interrupted, resumed again; output goes through pipes."""
    user.saves("dies.py", DIES)
    assert user.types("python dies.py").code == 137
    seen = user.types("asynccommit status flights --check")
    assert seen.code == 3
    assert "asynccommit resume file:" in seen.out

    table = user.folder / "flights"
    stopped = user.interrupts(
        "asynccommit resume flights -o asynccommit.rate=5", lambda: len(list(table.glob("*"))) > 4
    )
    assert stopped.code == 130
    assert "error: interrupted; the commit can be resumed: asynccommit resume" in stopped.err
    assert "Traceback" not in stopped.err
    assert (
        "it was interrupted at job_stage_rename_files"
        in user.types("asynccommit status flights").out
    )

    finished = user.types("asynccommit resume flights")
    assert finished.out.startswith("job nightly committed 60 files, ")
    piped = user.types("asynccommit ls -r flights | head -2")
    assert (piped.code in (0, 141), len(piped.out.splitlines())) == (True, 2)
    assert "rror" not in piped.err
    full = user.types("asynccommit status flights > /dev/full")
    assert (full.code, full.err) == (1, "error: standard output: No space left on device\n")
    wrong = user.types("asynccommit commit flights --tasks 1 --mode overwrit")
    assert wrong.code == 2
    assert "expected one of append, overwrite (or replace_table)" in wrong.err
    assert user.types("asynccommit gc flights --yes").code == 0
    assert user.types("asynccommit status flights --check --quiet").code == 0


def test_a_load_tester(user: User) -> None:
    """An emulator beside a program, the rates of a disk, a forecast: each answers when quiet."""
    user.follows("emulators.md", "from asynccommit import Job, open_job", "--lost 2% --quiet &")
    user.follows("cli.md", "asynccommit loadtest load --files 200")

    told = user.types("asynccommit simulate --files 500 --quiet").out

    assert told.startswith("a commit of 500 files of ")
    refused = user.types("asynccommit loadtest load --files none")
    assert refused.code == 2
    assert "--files" in refused.err


def test_a_user_with_tests_of_their_own(user: User) -> None:
    """pytest ends when the tests have: emulators wait for clean-ups; a misspelt fault fails."""
    user.saves("test_mine.py", OWN_TESTS)

    said = user.types("python -m pytest -q -p no:cacheprovider test_mine.py")

    assert said.code == 1
    assert "1 failed, 2 passed" in said.out
    assert "fault.op is 'renam': expected one of *, create, mkdir" in said.out
    assert "could not be deleted" not in said.out + said.err
    assert "Traceback" not in said.err


def test_a_maintainer(user: User) -> None:
    """The tests of a module take seconds, and an option that no page names fails one."""
    clone = user.folder / "asynccommit"
    shutil.copytree(ROOT, clone, ignore=_LOCAL)
    here = User(clone, sys.executable)
    make = f"make -o java -o {sys.prefix}/.stamp VENV={sys.prefix}"
    assert "make setup" in here.types(f"{make} help").out

    tested = here.types(f'{make} test ARGS="-q -p no:cacheprovider tests/options/test_values.py"')
    assert tested.code == 0, tested.out + tested.err
    options = clone / "asynccommit/options/job.py"
    text = options.read_text()
    assert DOUBLED in text
    options.write_text(text.replace(DOUBLED, DOUBLED + DOUBLED.replace(".files", ".rows")))
    page = "tests/docs/test_docs.py::test_every_option_is_documented"
    forgotten = here.types(f'{make} test ARGS="-q -p no:cacheprovider {page}"')
    assert forgotten.code == 2
    assert "asynccommit.require.rows" in forgotten.out
