"""Starts on machines of their own, and the events there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from asynccommit.demo.hadoop_jars import cached_jar
from asynccommit.demo.mini_hdfs import minicluster_jar
from asynccommit.demo.s3 import client_jars
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


def standalone(store: str, place: Place) -> str:
    """Submit README's example to a standalone cluster whose every process has a machine."""
    for key in ("spark.driver.host", "spark.driver.bindAddress", "spark.jars"):
        del place.settings[key]
    place.write(programs.example() + CHECK + FINISH)
    done = _run("standalone", place, store, jars=[str(place.jar)])
    if done["code"]:
        raise StartError(f"spark-submit ended with {done['code']}:\n{done['output']}")
    output: str = done["output"]
    return output


def events(seed: int, place: Place) -> str:
    """Let one event of each kind happen to writes on such a cluster."""
    happened = _run("events", place, "adls", jars=[], seed=seed)
    lines = [_line(event) for event in happened]
    if any(event["problems"] for event in happened):
        raise StartError("\n".join(lines))
    return "\n".join(lines)


def _run(module: str, place: Place, store: str, *, jars: list[str], **more: Any) -> Any:
    try:
        client, served = _PARTS[store](place.environment)
    except UnsupportedError as error:
        raise MissingError(str(error)) from error
    request = {
        "python": str(place.environment.python),
        "path": place.environment.path,
        "jars": [*jars, *map(str, client)],
        "store": store,
        "served": [str(path) for path in served],
        "folder": str(place.folder),
        "timeout": place.timeout,
        **more,
    }
    return in_yard(f"tests.field.{module}", request, place.timeout)


def _adls(environment: Environment) -> tuple[Sequence[Path], Sequence[Path]]:
    """Return Hadoop's client of ADLS for an environment."""
    version = hadoop_in(environment.spark / "jars")
    name = f"hadoop-azure-{version}.jar"
    return [cached_jar(f"org.apache.hadoop:hadoop-azure:{version}", name)], []


# The client's jars, and those of the servers.
_PARTS: Mapping[str, Callable[[Environment], tuple[Sequence[Path], Sequence[Path]]]] = {
    "adls": _adls,
    "hdfs": lambda _: ([], [minicluster_jar()]),
    "s3": lambda _: (client_jars(), []),
}


def _line(event: dict[str, Any]) -> str:
    late = f", {len(event['late'])} names late" if event["late"] else ""
    said = f"{event['kind']} ({event['mode']}; {event['way']}): {event['files']} files{late}"
    return "\n  ".join([said, *event["problems"]])


_SUBMIT = "`spark-submit app.py`, with {}"
MACHINE_STARTS = {
    "machines": Start(partial(standalone, "adls"), _SUBMIT.format("the emulator of ADLS")),
    "hdfs": Start(partial(standalone, "hdfs"), _SUBMIT.format("HDFS")),
    "s3": Start(partial(standalone, "s3"), _SUBMIT.format("moto's S3")),
    **{f"events-{seed}": Start(partial(events, seed), "", None) for seed in SEEDS},
}
