"""Starts on machines of their own, and the events there."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from asynccommit.demo.hadoop_jars import cached_jar
from asynccommit.errors import UnsupportedError
from asynccommit.spark.clients import hadoop_in
from tests.field import programs
from tests.field.environments import Environment
from tests.field.machines import in_yard
from tests.field.place import MissingError, Place, StartError
from tests.field.programs import CHECK, FINISH
from tests.field.standalone import MASTER
from tests.field.starts import Start

SEEDS = range(5)
ON_MACHINES = MASTER


def standalone(place: Place) -> str:
    """Submit README's example to a standalone cluster whose every process has a machine."""
    for key in ("spark.driver.host", "spark.driver.bindAddress", "spark.jars"):
        del place.settings[key]
    place.write(programs.example() + CHECK + FINISH)
    done = _run("standalone", place, jars=[str(place.jar)])
    if done["code"]:
        raise StartError(f"spark-submit ended with {done['code']}:\n{done['output']}")
    output: str = done["output"]
    return output


def events(seed: int, place: Place) -> str:
    """Let one event of each kind happen to writes on such a cluster."""
    happened = _run("events", place, jars=[], seed=seed)
    lines = [_line(event) for event in happened]
    if any(event["problems"] for event in happened):
        raise StartError("\n".join(lines))
    return "\n".join(lines)


def _run(module: str, place: Place, *, jars: list[str], **more: Any) -> Any:
    request = {
        "python": str(place.environment.python),
        "path": place.environment.path,
        "jars": [*jars, str(_client(place.environment))],
        "folder": str(place.folder),
        "timeout": place.timeout,
        **more,
    }
    return in_yard(f"tests.field.{module}", request, place.timeout)


def _client(environment: Environment) -> Path:
    """Return Hadoop's client of ADLS for an environment."""
    (jars,) = environment.python.parent.parent.glob("lib/python*/site-packages/pyspark/jars")
    try:
        version = hadoop_in(jars)
        return cached_jar(
            f"org.apache.hadoop:hadoop-azure:{version}", f"hadoop-azure-{version}.jar"
        )
    except UnsupportedError as error:
        raise MissingError(str(error)) from error


def _line(event: dict[str, Any]) -> str:
    late = f", {len(event['late'])} names late" if event["late"] else ""
    said = f"{event['kind']} ({event['mode']}; {event['way']}): {event['files']} files{late}"
    return "\n  ".join([said, *event["problems"]])


_SUBMIT = "`spark-submit app.py`, each process and the store on a machine of its own"
MACHINE_STARTS = {
    "machines": Start(standalone, _SUBMIT),
    **{f"events-{seed}": Start(partial(events, seed), "", None) for seed in SEEDS},
}
