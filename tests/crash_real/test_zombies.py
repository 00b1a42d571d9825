"""A process that commits is suspended, its commit taken over; it wakes, and changes nothing."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from asynccommit.options.job import Mode
from asynccommit.testing.emulators.adls.emulator import running_emulator
from asynccommit.testing.emulators.gcs.emulator import running_gcs_emulator
from tests.crash_real.places import (
    AdlsPlace,
    GcsPlace,
    LocalPlace,
    Place,
    prepare,
    table_after,
    table_before,
    visible,
)
from tests.crash_real.processes import committing, run, wait_until

pytestmark = pytest.mark.timeout(180)

SOME = 20


@pytest.fixture(params=["local", "adls", "gcs"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A table on each store."""
    if request.param == "local":
        yield LocalPlace(tmp_path, rate=300)
        return
    if request.param == "gcs":
        with running_gcs_emulator(buckets=["data"]) as bucket:
            yield GcsPlace(bucket, rate=300)
        return
    with running_emulator() as emulator:
        yield AdlsPlace(emulator, rate=300)


@contextmanager
def asleep(place: Place, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Start a commit and suspend it when some of its files have left their tasks' directories."""
    with committing(place, "-o", f"asynccommit.rate={place.rate}", *options) as child:
        wait_until(lambda: _moved(place) >= SOME)
        child.send_signal(signal.SIGSTOP)
        yield child


def _moved(place: Place) -> int:
    return sum("/part-" in path and "/tasks/" not in path for path in place.names())


def check(place: Place, wanted: dict[str, str], *, marker: bool) -> None:
    """Compare what readers see."""
    tree = visible(place.tree())
    if marker:
        tree.pop("_SUCCESS")
    assert tree == wanted


@pytest.mark.sample(1)
@pytest.mark.parametrize("mode", [Mode.APPEND, Mode.REPLACE_PARTITIONS])
@pytest.mark.parametrize("ending", ["resume", "rollback"])
def test_a_takeover(place: Place, mode: Mode, ending: str) -> None:
    """Whoever was taken over fails when it wakes, and the table stays as it is."""
    written = prepare(place, tasks=8, files=25)
    undo = ending == "rollback"
    wanted = table_before() if undo else table_after(mode, written)
    with asleep(place, "--mode", mode.value) as child:
        assert run(place, "resume")[0] == 3
        code, said = run(place, "takeover", *(["--rollback"] if undo else []))
        assert code == 0, said
        check(place, wanted, marker=not undo)
        child.send_signal(signal.SIGCONT)
        assert child.wait(timeout=120) == 1

    check(place, wanted, marker=not undo)


@pytest.mark.sample(1)
def test_a_lease_that_is_over(place: Place) -> None:
    """A process that sleeps longer than its lease has lost its commit, without any force."""
    written = prepare(place, tasks=8, files=25)
    with asleep(place, "-o", "asynccommit.lease=2") as child:
        code, said = run(place, "resume")
        while code == 3:
            assert "asynccommit takeover" in said["message"]
            code, said = run(place, "resume")
        assert code == 0, said
        child.send_signal(signal.SIGCONT)
        assert child.wait(timeout=120) == 1

    check(place, table_after(Mode.APPEND, written), marker=True)
