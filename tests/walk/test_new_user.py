"""A new user: install the wheel, write in a notebook, lose the kernel, resume, read, clean up.

``ASYNCCOMMIT_PICTURES=FOLDER`` keeps the pictures that the walk takes; docs/img has two of them.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.browser import dom, find_browser, screenshot, trim
from tests.support.notebook import Notebook, notebook, page_of, text_of
from tests.support.spark import ENVIRONMENT, LOOPBACK, below

pytestmark = [
    pytest.mark.every(2, 0),
    pytest.mark.full,
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

SESSION = f"""
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.driver.host", "{LOOPBACK}")
    .config("spark.driver.bindAddress", "{LOOPBACK}")
    .config("spark.ui.enabled", "false")
    .config("spark.log.level", "OFF")
    .getOrCreate()
)
"""
CONFIGURE = """
import asynccommit.spark

asynccommit.spark.configure(spark)
asynccommit.spark.is_active(spark)
"""
WRITE = """
frame = spark.range(6000).selectExpr("id", "id % 150 as day").repartition(2)
frame.write.partitionBy("day").parquet("flights")
"""
REPORT = "asynccommit.spark.last_report()"
SLOW = """
spark.conf.set("asynccommit.rate", "40")
more = spark.range(6000, 12000).selectExpr("id", "id % 150 as day").repartition(2)
more.write.mode("append").partitionBy("day").parquet("flights")
"""
COUNT = 'print(spark.read.parquet("flights").count(), "rows")'
AGAIN = """
more = spark.range(6000, 12000).selectExpr("id", "id % 150 as day").repartition(2)
try:
    more.write.mode("append").partitionBy("day").parquet("flights")
except Exception as error:
    print(str(error).partition("JVM stacktrace")[0].strip())
"""
PAGE = """
report = asynccommit.spark.resume("flights")
report.save_html("page.html")
report
"""


def files(table: Path) -> int:
    """Return the number of files that readers see."""
    found = (path.relative_to(table).parts for path in below(table) if path.suffix == ".parquet")
    return sum("_temporary" not in parts for parts in found)


async def lose_the_kernel(running: Notebook, table: Path, before: int) -> None:
    """Kill the kernel in the middle of a commit."""
    cell = asyncio.create_task(running.run(SLOW))
    end = time.monotonic() + 100
    while files(table) < before + 20:
        assert not cell.done(), text_of(running.cells[-1][1])
        assert time.monotonic() < end
        await asyncio.sleep(0.1)
    os.kill(running.pid, signal.SIGKILL)
    with pytest.raises(Exception, match=r"[Kk]ernel died"):
        await cell


def command(python: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command of the fresh environment."""
    program = Path(python).with_name("asynccommit")
    return subprocess.run(
        [program, *words],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **ENVIRONMENT},
        check=False,
    )


def take_pictures(folder: Path, cells: Mapping[str, str]) -> None:
    """Take a picture of each page, where a browser is found."""
    kept = Path(os.environ.get("ASYNCCOMMIT_PICTURES") or folder)
    for name, text in cells.items():
        (folder / f"{name}.html").write_text(text, "utf-8")
        screenshot(folder / f"{name}.html", kept / f"{name}.png", (1000, 1500))
        trim(kept / f"{name}.png")
        assert (kept / f"{name}.png").stat().st_size > 5_000


def test_walk_of_a_new_user(python: str, tmp_path: Path) -> None:
    """Each step of the first day works as the pages say, from the wheel alone."""
    table = tmp_path / "flights"

    async def first_day() -> None:
        async with notebook(tmp_path, {**os.environ, **ENVIRONMENT}, python=python) as running:
            await running.run(SESSION)
            where = await running.run("import asynccommit; print(asynccommit.__file__)")
            assert str(Path(python).parents[1]) in text_of(where)
            assert "True" in text_of(await running.run(CONFIGURE))
            assert "finished in" in text_of(await running.run(WRITE), "text/html")
            shown = text_of(await running.run(REPORT), "text/html")
            assert re.search(r"committed \d+ files", shown)
            take_notebook(running, "notebook")
            await lose_the_kernel(running, table, files(table))

    async def second_day() -> None:
        async with notebook(tmp_path, {**os.environ, **ENVIRONMENT}, python=python) as running:
            await running.run(SESSION)
            await running.run(CONFIGURE)
            before = files(table)
            refused = text_of(await running.run(AGAIN))
            assert "asynccommit resume" in refused
            assert "asynccommit.spark.resume(" in refused
            assert files(table) == before
            resumed = text_of(await running.run(PAGE), "text/html")
            assert "resumed" in resumed
            assert "12000 rows" in text_of(await running.run(COUNT))
            take_notebook(running, "resume")

    def take_notebook(running: Notebook, name: str) -> None:
        if find_browser() is not None:
            # The place of the test would only distract in the picture.
            shown = page_of(running.cells[2:]).replace(str(tmp_path), "/home/ann")
            take_pictures(tmp_path, {name: shown})

    asyncio.run(first_day())
    status = command(python, tmp_path, "status", "flights", "--check")
    assert status.returncode == 3
    assert "asynccommit resume" in status.stdout
    asyncio.run(second_day())

    read = command(python, tmp_path, "report", "flights", "--html", "command.html")
    assert read.returncode == 0, read.stderr
    if find_browser() is not None:
        assert "<svg" in dom(tmp_path / "page.html")
        assert "Nothing: no other job" in dom(tmp_path / "command.html")
    swept = command(python, tmp_path, "gc", "flights", "--older-than", "0", "--yes", "--json")
    assert swept.returncode == 0, swept.stderr
    assert json.loads(swept.stdout)["blocked"] is False
    assert not (table / "_temporary").exists()
    assert command(python, tmp_path, "status", "flights", "--check").returncode == 0
