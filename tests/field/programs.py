"""The programs of the cells: README's first example, word for word, and the checks after it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from tests.field.belongings import PACKAGE
from tests.support.snippets import ROOT, Snippet, snippets

_CHECKS = Path(__file__).with_name("checks.py")
_BUILDER = 'SparkSession.builder.appName("flights")'
_CONFIGURED = f"spark = asynccommit.spark.configure({_BUILDER}).getOrCreate()"

BEFORE = """\
from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("before").getOrCreate()
spark.range(5).write.parquet("before")
"""
CHECK = """\
exec(compile(open("checks.py").read(), "checks.py", "exec"))
found = check(spark)
"""
FINISH = "finish(found)\n"
ON_ADLS = """\
flights.write.parquet("{url}/flights")
found["elsewhere"] = spark.read.parquet("{url}/flights").count()
"""


@cache
def _readme() -> tuple[Snippet, Snippet]:
    """Return README's first example, and its output."""
    code, output = [each for each in snippets(ROOT / "README.md") if "spark" in each.how]
    return code, output


def example() -> str:
    """Return README's first example."""
    return _readme()[0].text


def printed() -> re.Pattern[str]:
    """Return a pattern of the line that README's example prints, on any store."""
    line = re.escape(_readme()[1].text.strip()).replace(r"\.\.\.", ".*")
    return re.compile(line.replace("file:", "[a-z0-9]+:"))


def example_again() -> str:
    """Return README's example for a second session of the process, and another table."""
    return "\nspark.stop()\n" + _replaced(example(), 'parquet("flights")', 'parquet("again")')


def example_of_running() -> str:
    """Return README's example with ``configure(spark)`` for the session that runs."""
    return _replaced(example(), _CONFIGURED, "asynccommit.spark.configure(spark)")


def example_without_call() -> str:
    """Return README's example with no call of this package before it writes."""
    return _replaced(example(), _CONFIGURED, f"spark = {_BUILDER}.getOrCreate()")


def example_with_package() -> str:
    """Return README's example with a Maven package of the user's in the builder."""
    return _replaced(example(), _BUILDER, f'{_BUILDER}.config("spark.jars.packages", "{PACKAGE}")')


def example_with_store() -> str:
    """Return README's example with the client of a store."""
    return _replaced(example(), _BUILDER, f'{_BUILDER}, hadoop_clients=["abfs"]')


def checks() -> str:
    """Return the source of the checks."""
    return _CHECKS.read_text("utf-8")


def _replaced(text: str, before: str, after: str) -> str:
    if before not in text:
        raise ValueError(f"README's first example no longer has {before}")
    return text.replace(before, after)
