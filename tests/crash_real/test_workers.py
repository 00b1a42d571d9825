"""Workers that are killed or stopped by signals, some of them with their driver."""

from __future__ import annotations

import pytest

from tests.crash_real.workers import Strikes


@pytest.mark.full
@pytest.mark.every(4)
@pytest.mark.timeout(240)
@pytest.mark.parametrize("seed", range(8))
def test_one_process_ends_what_struck_workers_have_begun(seed: int) -> None:
    """The table has every file and the marker, or none of both."""
    strikes = Strikes(seed)

    assert strikes.happen() == []
    assert strikes.counts["SIGKILL"] + strikes.counts["SIGSTOP"]
