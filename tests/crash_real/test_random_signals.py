"""Drivers of the same job and of others are stopped, continued and killed at random."""

from __future__ import annotations

import logging
import os
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from asynccommit.testing.emulators.adls.emulator import running_emulator
from asynccommit.testing.emulators.gcs.emulator import running_gcs_emulator
from asynccommit.testing.models.gcs.model import BucketOptions
from tests.crash_real.forked import forking
from tests.crash_real.places import AdlsPlace, GcsPlace, LocalPlace, Place
from tests.crash_real.signalled import Chaos
from tests.support.selection import amount

SEEDS = amount("ASYNCCOMMIT_SIGNAL_SEEDS", quick=1, full=2)
FIRST = int(os.environ.get("ASYNCCOMMIT_SIGNAL_FIRST", "0"))
KINDS = ("local", "adls", "gcs")

log = logging.getLogger(__name__)

pytestmark = [pytest.mark.more, pytest.mark.timeout(120 + 60 * SEEDS)]


@contextmanager
def table(kind: str, folder: Path) -> Iterator[Place]:
    """Give an empty place on a store."""
    if kind == "local":
        yield LocalPlace(folder)
    elif kind == "adls":
        with running_emulator() as account:
            yield AdlsPlace(account)
    else:
        with running_gcs_emulator(buckets={"data": BucketOptions(hns=True)}) as bucket:
            yield GcsPlace(bucket)


def happen(kind: str, seed: int, folder: Path) -> Counter[str]:
    """Let one seed happen; what is wrong fails, with all that happened."""
    folder.mkdir()
    with table(kind, folder) as place, forking(folder) as forks:
        chaos = Chaos(place, forks, random.Random(f"{kind} {seed}"))
        try:
            found = chaos.happen()
            assert not found, "\n".join(found)
        except BaseException as error:
            error.add_note("\n".join([f"seed {seed} on {kind}:", *chaos.log]))
            raise
        return chaos.counts


@pytest.mark.every(3)
@pytest.mark.sample(1)
@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_signals_at_random(kind: str, tmp_path: Path) -> None:
    """The table is as if the jobs that say so were committed one by one; nothing else is left."""
    counts: Counter[str] = Counter()
    for seed in range(FIRST, FIRST + SEEDS):
        counts += happen(kind, seed, tmp_path / f"{seed}")
    log.info("in %s seeds on %s: %s", SEEDS, kind, dict(counts))
    assert counts["SIGSTOP"] or SEEDS < 4
