"""Test what the pytest plugin adds to each pytest run of an environment with this package."""

from __future__ import annotations

import subprocess
import sys

_LOADED = """
import sys, pytest, pytest_asyncio
before = set(sys.modules)
import asynccommit.testing.pytest_plugin
print(*sorted(set(sys.modules) - before), sep="\\n")
"""


def test_the_plugin_loads_no_module_that_it_does_not_need() -> None:
    """The plugin loads a few small modules: no store, no HTTP library, no emulator."""
    done = subprocess.run(
        [sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == [
        "asynccommit",
        "asynccommit.former",
        "asynccommit.runtime",
        "asynccommit.runtime.lazy",
        "asynccommit.showing",
        "asynccommit.testing",
        "asynccommit.testing.pytest_plugin",
        "asynccommit.version",
    ]
