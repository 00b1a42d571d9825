"""A move that is killed is finished or undone: by the same command, or from its journal."""

from __future__ import annotations

import json
import logging
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from asynccommit.testing.emulators.adls.emulator import running_emulator
from asynccommit.testing.emulators.gcs.emulator import running_gcs_emulator
from tests.crash_real.places import AdlsPlace, GcsPlace, LocalPlace, Place, digest
from tests.crash_real.processes import kill
from tests.support.selection import amount

log = logging.getLogger(__name__)

KILLS = amount("ASYNCCOMMIT_KILLS", quick=2, full=6)
JOURNALED = amount("ASYNCCOMMIT_KILLS", quick=1, full=2)
SEED = int(os.environ.get("ASYNCCOMMIT_KILL_SEED", "1"))
FILES = {f"p={n % 7}/part-{n:04d}": b"file %d" % n for n in range(700)}
EXPECTED = {name: digest(data) for name, data in FILES.items()}
"""The files of a tree that moves: name -> digest."""
OWN = {f"p={n}/own": digest(b"own") for n in range(7)}
"""The files that the destination has before."""
LEASE = "5"
"""Seconds after which a move with a journal may be undone on a store over a network."""

pytestmark = [pytest.mark.full, pytest.mark.slow, pytest.mark.timeout(120 + 20 * KILLS)]


def _ends(place: Place) -> tuple[dict[str, str], dict[str, str]]:
    """Return the files at either end of the move."""
    files = {path: said for path, said in place.tree().items() if said != "/"}
    ends: tuple[dict[str, str], dict[str, str]] = ({}, {})
    for path, said in files.items():
        top, _, name = path.partition("/")
        ends[("in", "out").index(top)][name] = said
    return ends


def _move(place: Place, source: str, dest: str, *more: str) -> subprocess.Popen[bytes]:
    words = ("mv", f"{place.url}/{source}", f"{place.url}/{dest}", "--max-concurrency", "4")
    rate = ("--rate", str(place.rate // 2))
    command = [sys.executable, "-m", "asynccommit", *words, *rate, *more, *place.arguments]
    return subprocess.Popen([*command, "--quiet"], stderr=subprocess.DEVNULL)


def kill_moves(place: Place, rng: random.Random, names: Path) -> None:
    """Kill moves at random moments; no file is lost, doubled or changed."""
    place.fill({f"in/{name}": data for name, data in FILES.items()})
    place.fill({f"out/p={n}/own": b"own" for n in range(7)})  # so that directories are merged
    place.save()
    names.write_text("".join(f"{name}\n" for name in FILES))
    inside = 0
    for number in range(KILLS):
        place.restore()
        with _move(place, "in", "out") as moving:
            _wait_until_moving(place, moving)
            time.sleep(rng.uniform(0, 0.8))
            kill(place, moving)
        here, there = _ends(place)
        assert not here.keys() & there.keys()
        assert {**here, **there} == EXPECTED | OWN
        inside += bool(here) and there.keys() > OWN.keys()
        if number % 2:
            with _move(place, "out", "in", "--from-file", str(names), "--keep-going") as moving:
                assert moving.wait() in (0, 1)  # files that have not left are not there to move
            assert _ends(place) == (EXPECTED, OWN)
        else:
            with _move(place, "in", "out") as moving:
                assert moving.wait() in (0, 5)  # the last file may have gone before the kill
            assert _ends(place) == ({}, EXPECTED | OWN)
    assert inside >= KILLS // 4


def kill_journaled_moves(place: Place, rng: random.Random, folder: Path) -> None:
    """Kill moves with a journal at random moments, and settlings of them; both ends are exact."""
    place.fill({f"in/{name}": data for name, data in FILES.items()})
    place.fill({f"out/p={n}/own": b"own" for n in range(7)})
    place.save()
    inside = settlings = 0
    for number in range(JOURNALED):
        place.restore()
        local = number % 3 > 0
        journal = str(folder / f"move-{number}.json") if local else f"{place.url}/journal.json"
        with _move(place, "in", "out", "--journal", journal, "--lease", LEASE) as moving:
            _wait_until_moving(place, moving)
            time.sleep(rng.uniform(0, 0.8))
            kill(place, moving)
        here, there = _data(place)
        assert not here.keys() & there.keys()
        assert {**here, **there} == EXPECTED | OWN
        inside += bool(here) and there.keys() > OWN.keys()
        way = "--rollback" if number % 2 else "--resume"
        if number % 5 == 4:  # whoever settles it is killed too
            with _settle(place, way, journal) as settling:
                time.sleep(rng.uniform(0.3, 1.5))
                settlings += settling.poll() is None
                kill(place, settling)
        undone = _settled(place, way, journal)
        assert _data(place) == ((EXPECTED, OWN) if undone else ({}, EXPECTED | OWN))
        if local:
            state = json.loads(Path(journal).read_text())["state"]
            assert state == ("undone" if undone else "finished")
    log.info("%d kills: %d between the renames, %d settlings", JOURNALED, inside, settlings)
    assert inside >= JOURNALED // 4


def _data(place: Place) -> tuple[dict[str, str], dict[str, str]]:
    """Return the files at either end, without those of the commit."""
    files = {path: said for path, said in place.tree().items() if said != "/"}
    ends: tuple[dict[str, str], dict[str, str]] = ({}, {})
    for path, said in files.items():
        top, _, name = path.partition("/")
        if top in ("in", "out") and not name.startswith("_temporary/"):
            ends[top == "out"][name] = said
    return ends


def _settle(place: Place, way: str, journal: str) -> subprocess.Popen[bytes]:
    words = ("mv", way, journal, "--lease", LEASE, "--max-concurrency", "4", *place.arguments)
    return subprocess.Popen(
        [sys.executable, "-m", "asynccommit", *words, "--quiet"],
        stderr=subprocess.PIPE,
    )


def _settled(place: Place, way: str, journal: str) -> bool:
    """Finish or undo the move, as soon as its lease allows; return whether it is undone.

    A move whose files have all arrived can only be finished.
    """
    for _ in range(60):
        with _settle(place, way, journal) as settling:
            _, said = settling.communicate()
        if settling.returncode == 0:
            names = [path for path in place.tree() if "_temporary" in path]
            assert names == []
            return way == "--rollback"
        assert settling.returncode == 3, said.decode()
        if b"cannot be undone" in said:
            way = "--resume"
        time.sleep(0.5)
    raise AssertionError(said.decode())


def _wait_until_moving(place: Place, moving: subprocess.Popen[bytes]) -> None:
    while moving.poll() is None:
        if any("part-" in name and "out/" in name for name in place.names()):
            return
        time.sleep(0.01)


@pytest.mark.every(3, 0)
def test_moves_on_a_local_disk(tmp_path: Path) -> None:
    """On a local disk each file is at one end, whenever the move dies."""
    kill_moves(LocalPlace(tmp_path, rate=1_000), random.Random(SEED), tmp_path / "names")


@pytest.mark.every(3, 1)
def test_moves_on_an_account(tmp_path: Path) -> None:
    """The same on the emulator of ADLS Gen2."""
    with running_emulator() as emulator:
        kill_moves(AdlsPlace(emulator, rate=1_000), random.Random(SEED), tmp_path / "names")


@pytest.mark.every(3, 2)
def test_moves_in_a_bucket(tmp_path: Path) -> None:
    """The same in a flat bucket of the emulator of Google Cloud Storage."""
    with running_gcs_emulator(buckets=["data"]) as emulator:
        kill_moves(GcsPlace(emulator, rate=1_000), random.Random(SEED), tmp_path / "names")


@pytest.mark.every(3, 1)
def test_journaled_moves_on_a_local_disk(tmp_path: Path) -> None:
    """On a local disk a move with a journal ends as its last command says."""
    kill_journaled_moves(LocalPlace(tmp_path, rate=1_000), random.Random(SEED), tmp_path)


@pytest.mark.every(3, 2)
def test_journaled_moves_on_an_account(tmp_path: Path) -> None:
    """The same on the emulator of ADLS Gen2."""
    with running_emulator() as emulator:
        kill_journaled_moves(AdlsPlace(emulator, rate=1_000), random.Random(SEED), tmp_path)


@pytest.mark.every(3, 0)
def test_journaled_moves_in_a_bucket(tmp_path: Path) -> None:
    """The same in a flat bucket of the emulator of Google Cloud Storage."""
    with running_gcs_emulator(buckets=["data"]) as emulator:
        kill_journaled_moves(GcsPlace(emulator, rate=1_000), random.Random(SEED), tmp_path)
