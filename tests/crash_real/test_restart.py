"""The service goes away in mid-commit, and comes back with all that it had stored."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from asynccommit.options.job import Mode
from asynccommit.testing.emulators.adls.emulator import EmulatorThread, running_emulator
from tests.crash_real.places import AdlsPlace, prepare, table_after, table_before, visible
from tests.crash_real.processes import committing, run, wait_until

pytestmark = pytest.mark.timeout(180)

SOME = 20


class Service:
    """An emulator whose process cannot be ended without its memory: its port is, and is opened
    again, with every connection cut."""

    def __init__(self, emulator: EmulatorThread) -> None:
        self.place = AdlsPlace(emulator, rate=200)
        self._emulator = emulator

    def stop(self) -> None:
        """Cut all connections and close the port."""
        self._do(self._emulator._emulator.stop())

    def start(self) -> None:
        """Open the same port again."""
        self._emulator._emulator.wanted_port = self._emulator.port
        self._do(self._emulator._emulator.start())

    def moved(self) -> int:
        """Return how many of the job's files readers see."""
        return sum("/part-" in path for path in visible(self.place.tree()))

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._emulator._loop).result(30)


@pytest.fixture
def service() -> Iterator[Service]:
    """An emulator that can be restarted."""
    with running_emulator() as emulator:
        yield Service(emulator)


def test_restart_in_mid_commit(service: Service) -> None:
    """A commit waits for a service that restarts, and ends as if nothing had been."""
    place = service.place
    written = prepare(place, tasks=8, files=25)
    with committing(place, "-o", f"asynccommit.rate={place.rate}") as child:
        wait_until(lambda: service.moved() >= SOME)
        service.stop()
        assert service.moved() < 200
        assert child.poll() is None
        service.start()
        assert child.wait(timeout=90) == 0

    tree = place.tree()
    tree.pop("_SUCCESS")
    assert tree == table_after(Mode.APPEND, written)


@pytest.mark.full
@pytest.mark.sample(1)
@pytest.mark.parametrize("ending", ["resume", "rollback"])
def test_service_gone_for_long(service: Service, ending: str) -> None:
    """A commit that cannot say that it lives stops; it is resumed or undone afterwards."""
    place = service.place
    written = prepare(place, tasks=8, files=25)
    options = ("-o", f"asynccommit.rate={place.rate}", "-o", "asynccommit.lease=4")
    with committing(place, *options) as child:
        wait_until(lambda: service.moved() >= SOME)
        service.stop()
        assert child.wait(timeout=90) == 1
        service.start()

    code, said = run(place, *(["resume"] if ending == "resume" else ["abort", "--rollback"]))
    assert code == 0, said
    tree = place.tree()
    if ending == "resume":
        tree.pop("_SUCCESS")
    assert tree == (table_after(Mode.APPEND, written) if ending == "resume" else table_before())
