"""Starts of drivers without Python, and of servers."""

from __future__ import annotations

from collections.abc import Callable

from tests.field import drivers, servers
from tests.field.place import Place, StartError
from tests.field.starts import Start


def _checked(start: Callable[[Place], str]) -> Callable[[Place], str]:
    """Return a start that also checks what it has written."""

    def checked(place: Place) -> str:
        output = start(place)
        if found := drivers.problems(place, (), output):
            raise StartError("\n".join([output, *found]))
        return output

    return checked


DRIVER_STARTS = {
    "sql": Start(_checked(drivers.sql), "`spark-sql -f queries.sql`", None),
    "scala": Start(_checked(drivers.scala), "`spark-submit --class App app.jar`, in Scala", None),
    "java": Start(_checked(drivers.java), "`spark-submit --class App app.jar`, in Java", None),
    "jar": Start(
        _checked(drivers.in_cluster),
        "the jar in Scala with `--deploy-mode cluster` on a standalone cluster",
        None,
    ),
    "thrift": Start(_checked(servers.thrift), "the Thrift server, with `beeline`", None),
    "connect": Start(_checked(servers.connect), "a Spark Connect server, with its client", None),
    "refused": Start(
        drivers.python_in_cluster,
        "`spark-submit --deploy-mode cluster app.py` on a standalone cluster",
        None,
        refusal=f'"{drivers.REFUSAL} clusters"',
    ),
}
