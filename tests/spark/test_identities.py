"""``doctor`` tries a destination as Python and as the JVM, and tells who each of them is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from asynccommit.demo.adls import client_jar
from asynccommit.runtime.host import user_name
from asynccommit.spark import doctor
from asynccommit.spark.jars import spark_jars
from asynccommit.testing.emulators.adls.emulator import running_emulator
from tests.support.abfs import conf_of, storage_options, why_not
from tests.support.snippets import ROOT
from tests.support.spark import ENVIRONMENT, run_script

NOBODY = 65534
PYTHON, JVM, MOVED = "identity of Python", "identity of the JVM", "file of the JVM"
WRONG = "d3Jvbmcga2V5IGZvciBhIHRlc3Qgb2YgdGhlIGRvY3Rvcg=="
MADE = """
import json

from asynccommit.spark import doctor

given = json.loads((scratch / "given.json").read_text())
made = builder(scratch)
for key, value in given["conf"].items():
    made.config(key, value)
spark = configure(made).getOrCreate()
told = []


def ask(path, **storage):
    bridge.storage_options.update(storage)
    told.append({check.name: check.to_json() for check in doctor(spark, path, write=True).checks})
    (scratch / "told.json").write_text(json.dumps(told))


"""
SUBMITTED = """
import json
from pathlib import Path

from pyspark.sql import SparkSession

from asynccommit.spark import configure, doctor
from tests.support.spark import builder

spark = configure(builder(Path("/tmp"), "local[1]")).getOrCreate()
print(json.dumps(doctor(spark, "{table}", write=True).to_json()))
"""
ACCOUNT = """
ask(given["root"])
key = [key for key in given["conf"] if "account.key" in key][0].removeprefix("spark.hadoop.")
spark.conf.set(key, given["wrong"])
ask(given["root"], **given["storage"])
spark.conf.set(key, given["storage"]["account_key"])
ask(given["root"], **given["storage"] | {"account_key": given["wrong"]})
"""


def _told(scratch: Path, body: str, given: dict[str, Any]) -> list[Any]:
    """Return the checks of each call of ``ask`` in a driver program of its own."""
    (scratch / "given.json").write_text(json.dumps(given))
    done = run_script(scratch, MADE + body, timeout=170)
    assert done.returncode == 0, done.stderr[-4000:]
    found: list[Any] = json.loads((scratch / "told.json").read_text())
    return found


def test_local_disk(spark: Any, tmp_path: Path) -> None:
    """Both write as the user of this process, and a destination that was not there is not made."""
    checks = {check.name: check for check in doctor(spark, str(tmp_path / "t"), write=True).checks}

    me = user_name(os.geteuid())
    assert checks[PYTHON].found == checks[JVM].found == f"{me}; lists and writes"
    assert [checks[name].ok for name in (PYTHON, JVM, MOVED)] == [True] * 3
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_unasked(spark: Any, tmp_path: Path) -> None:
    """Without ``write`` each lists the destination, and no file is handed over."""
    (tmp_path / "file").touch()
    checks = {check.name: check for check in doctor(spark, str(tmp_path)).checks}

    assert checks[PYTHON].found.endswith("; lists")
    assert checks[JVM].found.endswith("; lists")
    assert MOVED not in checks


def test_destination_that_neither_can_use(spark: Any, tmp_path: Path) -> None:
    """Each has its own error and its own remedy."""
    (tmp_path / "file").touch()
    checks = {c.name: c for c in doctor(spark, str(tmp_path / "file/t"), write=True).checks}

    assert checks[PYTHON].ok is checks[JVM].ok is False
    assert "storage_options" in checks[PYTHON].remedy
    assert "spark.hadoop.fs" in checks[JVM].remedy
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.every(2, 0)
@pytest.mark.full
@pytest.mark.spark
@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv"
)
def test_python_of_another_user(tmp_path: Path) -> None:
    """Where Python may not change what the JVM has made, the row of its file says so."""
    with TemporaryDirectory(dir="/tmp") as name:  # others may not enter the usual one
        place = Path(name)
        place.chmod(0o755)
        (place / "open").mkdir()
        (place / "open").chmod(0o777)
        checks = _submitted(place, str(place / "open/t"))
        left = list((place / "open").iterdir())

    assert checks[PYTHON]["found"] == f"{user_name(NOBODY)}; lists and writes"
    assert checks[JVM]["found"] == f"{user_name(0)}; lists and writes"
    assert checks[MOVED]["ok"] is False
    assert "Python cannot rename it" in checks[MOVED]["found"]
    assert left == []


def _submitted(place: Path, table: str) -> dict[str, Any]:
    """Return the checks of a program that spark-submit starts, whose Python is another user's."""
    python, program = place / "python", place / "program.py"
    options = f"--reuid={NOBODY} --regid={NOBODY} --clear-groups"
    python.write_text(
        f'#!/bin/sh\nHOME={place}/open exec setpriv {options} {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    program.write_text(SUBMITTED.format(table=table))
    command = [os.path.join(spark_jars().parent, "bin", "spark-submit"), str(program)]
    variables = ENVIRONMENT | {"PYSPARK_DRIVER_PYTHON": str(python), "PYTHONPATH": str(ROOT)}
    variables |= {"PYTHONWARNINGS": "ignore", "XDG_CACHE_HOME": f"{place}/none"}
    done = subprocess.run(
        command, env=os.environ | variables, cwd=place, capture_output=True, text=True, timeout=170
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    return {check["name"]: check for check in found["checks"]}


@pytest.mark.every(2, 1)
@pytest.mark.full
@pytest.mark.spark
def test_account(tmp_path: Path) -> None:
    """The row of the side that has a wrong key is a problem, without the key, and only that one."""
    if reason := why_not():
        pytest.skip(reason)
    with running_emulator() as emulator:
        emulator.do(lambda it: it.model.create_filesystem("tables"))
        host = f"{emulator.account}.dfs.core.windows.net"
        conf = {f"spark.hadoop.{key}": value for key, value in conf_of(emulator).items()}
        given = {
            "conf": {"spark.jars": str(client_jar()), **conf},
            "root": f"abfs://tables@{host}/t",
            "storage": storage_options(emulator),
            "wrong": WRONG,
        }
        both, jvm, python = _told(tmp_path, ACCOUNT, given)

    assert both[PYTHON]["found"] == f"shared key of {emulator.account}; lists and writes"
    assert both[JVM]["found"] == f"shared key of {emulator.account}; lists and writes"
    assert both[MOVED]["ok"] is True
    assert [jvm[name]["ok"] for name in (PYTHON, JVM)] == [True, False]
    assert [python[name]["ok"] for name in (PYTHON, JVM)] == [False, True]
    assert jvm[PYTHON]["found"].startswith("option account_key; ")
    assert WRONG[:8] not in json.dumps([jvm, python])
