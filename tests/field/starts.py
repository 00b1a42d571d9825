"""The ways in which Spark is started, each with the program that it runs.

A start gets a place, runs the application there and returns its output.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asynccommit.demo.adls import client_conf, client_jar
from asynccommit.errors import UnsupportedError
from asynccommit.spark.clients import hadoop_in
from asynccommit.spark.jars import spark_jars
from asynccommit.testing.emulators.adls.auth import DEVELOPMENT_KEY
from asynccommit.testing.emulators.adls.emulator import running_emulator
from tests.field import belongings, programs
from tests.field.belongings import EXTRA, PACKAGE
from tests.field.place import MissingError, Place, StartError, TooLongError, options_of
from tests.field.programs import BEFORE, CHECK, FINISH
from tests.support.notebook import notebook, text_of
from tests.support.spark import LOOPBACK

ACCOUNT = "account"


@dataclass(frozen=True, slots=True)
class Start:
    """A way to start Spark.

    Attributes:
        run: starts it in a place; returns the output.
        text: the command or the call, for the table.
        tables: the tables that it writes, apart from those of all starts; ``None`` if it compares
            its tables itself.
        refusal: the words with which Spark refuses it; it writes nothing.
    """

    run: Callable[[Place], str]
    text: str
    tables: tuple[str, ...] | None = ()
    refusal: str = ""


def _python(place: Place) -> str:
    place.settings["spark.master"] = place.master
    return place.python(place.write(_twice()))


def _submit(place: Place) -> str:
    return place.run("spark-submit", "--master", place.master, place.write(_twice()))


def _shell(place: Place) -> str:
    """Feed the shell; Python reads a pipe as a script, without a session, unless ``-i`` is said."""
    place.variables["PYSPARK_DRIVER_PYTHON_OPTS"] = "-i"
    place.write(_once())
    return place.run("pyspark", "--master", place.master, given=_once())


def _arguments(place: Place) -> str:
    del place.settings["spark.jars"]
    said = f"--master {place.master} --jars {place.jar} pyspark-shell"
    place.variables["PYSPARK_SUBMIT_ARGS"] = said
    return place.python(place.write(_twice()))


def _notebook(place: Place) -> str:
    """Configure a session that an earlier cell has made."""
    place.settings["spark.master"] = place.master
    place.write("")
    return asyncio.run(run_cells(place, [BEFORE, programs.example_of_running(), CHECK + FINISH]))


async def run_cells(place: Place, cells: list[str]) -> str:
    """Run the cells of a notebook in one kernel, and return what they have written."""
    from nbclient.exceptions import CellExecutionError, CellTimeoutError

    python, timeout = str(place.environment.python), place.timeout
    variables = place.variables_of()
    async with notebook(place.folder, variables, python=python, timeout=timeout) as running:
        try:
            outputs: list[Any] = [await running.run(cell) for cell in cells]
        except CellExecutionError as error:
            raise StartError(str(error)) from error
        except CellTimeoutError as error:
            raise TooLongError(f"a cell took more than {timeout:.0f} s") from error
    return "\n".join(text_of(each) for each in outputs)


def _builder(place: Place) -> str:
    place.settings["spark.master"] = place.master
    return place.python(place.write(BEFORE + _once()))


def _everything(place: Place) -> str:
    """Submit with every kind of dependency; this package is one of them, as a zip."""
    del place.settings["spark.jars"]
    place.given |= {"classes": [*place.given["classes"], EXTRA], "module": "helper"}
    place.variables["PYTHONPATH"] = ""
    module = belongings.make_module(parts := _parts(place))
    options = {
        "--jars": str(place.jar),
        "--packages": PACKAGE,
        "--py-files": f"{module},{belongings.make_package(parts)}",
        "--archives": f"{belongings.make_environment(parts)}#env",
    }
    conf = _repository(place, {PACKAGE: place.extra})
    if not place.master.startswith("local["):
        # Only executors unpack an archive into their working directory.
        conf |= {"spark.pyspark.driver.python": place.variables_of()["PYSPARK_PYTHON"]}
        conf |= {"spark.pyspark.python": "./env/bin/python"}
        place.left_out |= {"PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"}
    said = [part for option in options.items() for part in option]
    app = place.write(_once())
    return place.run("spark-submit", "--master", place.master, *said, *options_of(conf), app)


def _settings(place: Place) -> str:
    """Submit a program without a call, with what ``spark-conf`` prints in spark-defaults.conf."""
    launcher = place.environment.programs / "asynccommit-python"
    if not launcher.is_file():
        raise MissingError(f"{launcher} is not there: make setup")
    app = place.write(programs.example_without_call() + CHECK + FINISH)
    printed = place.python("-m", "asynccommit", "spark-conf")
    with (place.folder / "conf/spark-defaults.conf").open("a", encoding="utf-8") as file:
        file.write(printed)
    place.left_out |= {"PYSPARK_DRIVER_PYTHON"}  # the setting says it
    return place.run("spark-submit", "--master", place.master, app)


def _repository(place: Place, jars: dict[str, Any]) -> dict[str, str]:
    parts = _parts(place)
    settings = belongings.make_repository(parts, jars)
    return {"spark.jars.ivySettings": str(settings), "spark.jars.ivy": str(parts / "ivy")}


def _parts(place: Place) -> Path:
    """Return the directory of the user's parts, in which the application is not started."""
    (place.folder / "parts").mkdir(exist_ok=True)
    return place.folder / "parts"


def _packages(place: Place) -> str:
    place.settings["spark.master"] = place.master
    place.settings |= _repository(place, {PACKAGE: place.extra})
    place.given["classes"] = [*place.given["classes"], EXTRA]
    return place.python(place.write(programs.example_with_package() + CHECK + FINISH))


def _stores(place: Place) -> str:
    """Write to an account of the emulator through the client that ``stores`` has loaded."""
    try:
        version = hadoop_in(spark_jars())
        client = {f"org.apache.hadoop:hadoop-azure:{version}": client_jar()}
    except UnsupportedError as error:
        raise MissingError(str(error)) from error
    place.settings["spark.master"] = place.master
    place.settings |= _repository(place, client)
    with running_emulator(accounts={ACCOUNT: DEVELOPMENT_KEY}) as emulator:
        emulator.do(lambda it: it.model.create_filesystem("data"))
        conf = client_conf(ACCOUNT, emulator.key, f"{LOOPBACK}:{emulator.port}")
        place.settings |= {f"spark.hadoop.{key}": value for key, value in conf.items()}
        url = f"abfs://data@{ACCOUNT}.dfs.core.windows.net"
        after = programs.ON_ADLS.format(url=url)
        return place.python(place.write(programs.example_with_store() + CHECK + after + FINISH))


def _once() -> str:
    return programs.example() + CHECK + FINISH


def _twice() -> str:
    """Return a program that stops its session and makes another."""
    return programs.example() + CHECK + programs.example_again() + FINISH


STARTS = {
    "python": Start(_python, "`python app.py`", ("again",)),
    "submit": Start(_submit, "`spark-submit app.py`", ("again",)),
    "shell": Start(_shell, "`pyspark`, fed by a pipe"),
    "builder": Start(_builder, "`configure(builder)` where a session runs", ("before",)),
    "notebook": Start(_notebook, "`configure(spark)` in a notebook", ("before",)),
    "arguments": Start(
        _arguments, '`PYSPARK_SUBMIT_ARGS="--jars x.jar pyspark-shell"`', ("again",)
    ),
    "everything": Start(
        _everything, "`spark-submit --jars --packages --py-files --archives app.py`"
    ),
    "settings": Start(_settings, "settings of `asynccommit spark-conf`, a program without a call"),
    "packages": Start(_packages, '`configure(builder.config("spark.jars.packages", ...))`'),
    "stores": Start(_stores, '`configure(builder, hadoop_clients=["abfs"])`'),
}
