"""What every test has: a guard against blocking the event loop, and a place in a selection."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from blockbuster import BlockBuster, blockbuster_ctx
from hypothesis import settings

from asynccommit.runtime.background import wait_for_all
from tests.support import selection
from tests.support.class_data import SHORT_LIVED, driver_options
from tests.support.held import HeldAccount

# How long an example takes is the machine's business.
settings.register_profile(selection.ALL, deadline=None)
settings.register_profile(selection.REST, deadline=None)
settings.register_profile(selection.QUICK, deadline=None, max_examples=30)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that selects a part of the tests."""
    parts = (selection.ALL, selection.QUICK, selection.REST)
    text = "tests to run: all, a quick selection that proves each behaviour, or the rest"
    parser.addoption("--part", choices=parts, default=selection.ALL, help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Say which part runs before a test module is imported."""
    part = config.getoption("part")
    selection.set_part(part)
    settings.load_profile(part)
    # With it, no test would see output that a command forgets to flush.
    os.environ.pop("PYTHONUNBUFFERED", None)
    os.environ.setdefault("SPARK_SUBMIT_OPTS", driver_options())
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", SHORT_LIVED)
    _hear_interrupts()


def _hear_interrupts() -> None:
    """Let tests and the programs they start hear SIGINT, which a shell's background jobs ignore."""
    main = threading.current_thread() is threading.main_thread()
    if main and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header(config: pytest.Config) -> str:
    """Say what repeats the selection."""
    return f"part: {config.getoption('part')} (ASYNCCOMMIT_TEST_DAY={selection.day()})"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of other parts."""
    items[:], others = selection.in_part(items, config.getoption("part"))
    if others:
        config.hook.pytest_deselected(items=others)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Let a clean-up in the background end while the test's emulator is still there."""
    given = getattr(item, "funcargs", {}).values()
    if not any(isinstance(value, HeldAccount) for value in given):
        with suppress(TimeoutError):
            wait_for_all(30)


@pytest.fixture(autouse=True)
def blockbuster() -> Iterator[BlockBuster]:
    """Fail a test whose code under test makes a blocking call on the event loop."""
    with blockbuster_ctx("asynccommit") as guard:
        # The kernel knows the working directory: nothing is read.
        guard.functions["os.getcwd"].can_block_in("asynccommit/options/checked.py", "located")
        # A report that is shown as text imports what shows it, once.
        for function in guard.functions.values():
            function.can_block_in("asynccommit/showing.py", "display")
        # A quick callback is waited for, and one that blocks half a second at most.
        apart = ("asynccommit/runtime/apart.py", "__call__")
        guard.functions["threading.Lock.acquire"].can_block_in(*apart)
        yield guard
