"""A process that commits is killed, again and again; a new one finishes or undoes what it began."""

from __future__ import annotations

import logging
import os
import random
from pathlib import Path

import pytest

from asynccommit.testing.emulators.adls.emulator import running_emulator
from asynccommit.testing.emulators.gcs.emulator import running_gcs_emulator
from asynccommit.testing.emulators.s3_express.emulator import running_express_emulator
from asynccommit.testing.models.gcs.model import BucketOptions
from asynccommit.testing.models.s3.directory_bucket import DirectoryRules
from tests.crash_real.express_place import ExpressPlace
from tests.crash_real.kills import Harness
from tests.crash_real.places import AdlsPlace, GcsPlace, LocalPlace, OneLakePlace, tokens_by_az
from tests.support.express import BUCKET
from tests.support.selection import amount

KILLS = amount("ASYNCCOMMIT_KILLS", quick=2, full=20)
SEED = int(os.environ.get("ASYNCCOMMIT_KILL_SEED", "1"))

log = logging.getLogger(__name__)

pytestmark = [pytest.mark.more, pytest.mark.slow, pytest.mark.timeout(120 + 20 * KILLS)]


def kill_all(harness: Harness, kills: int = KILLS) -> None:
    """Kill as often as is asked for; that most moments are inside of the commit is checked too."""
    harness.prepare()
    for number in range(kills):
        try:
            harness.kill(number)
        except BaseException as error:
            error.add_note(f"kill {number} of seed {SEED}; so far: {dict(harness.hits)}")
            raise
    log.info("where %s kills fell: %s", kills, dict(harness.hits))
    assert harness.hits["inside"] >= kills // 4


@pytest.mark.every(3, 2)
@pytest.mark.full
def test_kills_on_a_local_disk(tmp_path: Path) -> None:
    """The table is as after an undisturbed commit, or as before the job, at whichever moment."""
    kill_all(Harness(LocalPlace(tmp_path), random.Random(SEED)))


@pytest.mark.every(3, 1)
def test_kills_on_an_account(tmp_path: Path) -> None:
    """The same on the emulator of ADLS Gen2, where what was sent may still take effect."""
    with running_emulator() as emulator:
        kill_all(Harness(AdlsPlace(emulator), random.Random(SEED)))


@pytest.mark.every(3, 2)
@pytest.mark.full
def test_kills_on_onelake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same in a managed folder of the emulator's mode of that name, with tokens."""
    tokens_by_az(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with running_emulator(onelake={OneLakePlace.filesystem: ["Orders.Lakehouse"]}) as emulator:
        kill_all(Harness(OneLakePlace(emulator), random.Random(SEED)))


@pytest.mark.every(3, 0)
@pytest.mark.sample(1)
@pytest.mark.full
@pytest.mark.parametrize("kind", ["flat", "hns"])
def test_kills_on_a_bucket(kind: str) -> None:
    """The same on the emulator of Google Cloud Storage, half as often in each kind of bucket."""
    buckets = {"data": BucketOptions(hns=kind == "hns")}
    with running_gcs_emulator(buckets=buckets) as emulator:
        kill_all(Harness(GcsPlace(emulator), random.Random(SEED)), KILLS // 2)


@pytest.mark.every(3, 0)
@pytest.mark.sample(1)
@pytest.mark.full
@pytest.mark.parametrize("keeps_etag", [True, False])
def test_kills_on_a_directory_bucket(keeps_etag: bool) -> None:
    """The same on S3 that renames, half as often whether a rename keeps the etag or not."""
    switches = DirectoryRules(keeps_etag=keeps_etag)
    with running_express_emulator(buckets=[BUCKET], switches=switches) as emulator:
        kill_all(Harness(ExpressPlace(emulator), random.Random(SEED)), KILLS // 2)
