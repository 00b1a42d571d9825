"""A move that is killed is finished by the same command, or undone by the one back."""

from __future__ import annotations

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
from tests.support.selection import amount

KILLS = amount("ASYNCCOMMIT_KILLS", quick=2, full=6)
SEED = int(os.environ.get("ASYNCCOMMIT_KILL_SEED", "1"))
FILES = {f"p={n % 7}/part-{n:04d}": b"file %d" % n for n in range(700)}
EXPECTED = {name: digest(data) for name, data in FILES.items()}
"""The files of a tree that moves: name -> digest."""
OWN = {f"p={n}/own": digest(b"own") for n in range(7)}
"""The files that the destination has before."""

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
            moving.kill()
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


def _wait_until_moving(place: Place, moving: subprocess.Popen[bytes]) -> None:
    while moving.poll() is None:
        if any("part-" in name and "out/" in name for name in place.names()):
            return
        time.sleep(0.01)


def test_moves_on_a_local_disk(tmp_path: Path) -> None:
    """On a local disk each file is at one end, whenever the move dies."""
    kill_moves(LocalPlace(tmp_path, rate=1_000), random.Random(SEED), tmp_path / "names")


def test_moves_on_an_account(tmp_path: Path) -> None:
    """The same on the emulator of ADLS Gen2."""
    with running_emulator() as emulator:
        kill_moves(AdlsPlace(emulator, rate=1_000), random.Random(SEED), tmp_path / "names")


def test_moves_in_a_bucket(tmp_path: Path) -> None:
    """The same in a flat bucket of the emulator of Google Cloud Storage."""
    with running_gcs_emulator(buckets=["data"]) as emulator:
        kill_moves(GcsPlace(emulator, rate=1_000), random.Random(SEED), tmp_path / "names")
