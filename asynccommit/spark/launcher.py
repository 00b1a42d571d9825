"""``asynccommit-python``: a Python that commits unchanged programs.

It is for ``spark.pyspark.driver.python``: spark-submit runs it with the program and its arguments.
Before the program begins, it leaves the engine in the JVM that spark-submit has started, as
``configure`` does; jar and protocol come from settings (``asynccommit spark-conf``). In any other
place it is the Python that it was installed for.
"""

from __future__ import annotations

import builtins
import io
import os
import sys
from typing import Any, NoReturn

from asynccommit.errors import UnsupportedError


def main() -> NoReturn:
    """Run the program of the command line as Python would."""
    program, *_ = given = sys.argv[1:] or ["-"]
    if program.startswith("-") or "PYSPARK_GATEWAY_PORT" not in os.environ:
        os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
    try:
        _register()
    except UnsupportedError as error:
        sys.exit(f"asynccommit-python: {error}")
    run_program(given)


def _register() -> None:
    """Leave the engine in spark-submit's JVM.

    Raises ``UnsupportedError`` if it was started without the jar, or with another.
    """
    from pyspark import SparkContext

    from asynccommit.spark.loading import check_loaded
    from asynccommit.spark.sessions import register

    ensure: Any = SparkContext._ensure_initialized
    ensure()
    check_loaded(SparkContext._gateway)
    register(SparkContext._gateway)


def run_program(given: list[str]) -> NoReturn:
    """Execute a program, with its arguments, as the ``__main__`` module.

    Functions of that module are sent to executors by value; others by name.
    """
    program, *_ = sys.argv = given
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.realpath(program))
    with io.open_code(program) as file:
        code = compile(file.read(), program, "exec")
    names = sys.modules["__main__"].__dict__
    names.clear()
    names.update(__name__="__main__", __file__=program, __builtins__=builtins, __spec__=None)
    names.update(__doc__=None, __package__=None, __loader__=None)
    exec(code, names)
    sys.exit()
