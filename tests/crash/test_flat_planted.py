"""Three bounds keep late block lists out: without any one of them the harness finds a file."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from asynccommit.commit.by_upload import rollback
from asynccommit.commit.by_upload.completion_window import CompletionWindow
from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.stores.adls.flat.client import FlatBlobClient
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.test_uploads_points import SCENARIOS
from tests.crash.test_uploads_races import asleep, violations
from tests.support.flat_crashes import FlatWorld

Plant = Callable[[pytest.MonkeyPatch], None]


def no_wait(patch: pytest.MonkeyPatch) -> None:
    """Look at the uploads while lists may still be on their way."""

    async def nothing(run: UploadContext) -> None:
        return None

    patch.setattr(rollback, "outlast_completions", nothing)


def no_check(patch: pytest.MonkeyPatch) -> None:
    """Send lists without a look at the outcome."""
    patch.setattr(CompletionWindow, "check", lambda window: None)


def no_end(patch: pytest.MonkeyPatch) -> None:
    """Sign lists that the service takes an hour later."""
    time = FlatBlobClient._service_time
    patch.setattr(FlatBlobClient, "_service_time", lambda client: time(client) + 3_600)


@pytest.mark.sample(1)
@pytest.mark.parametrize("plant", [no_wait, no_check, no_end], ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that stood still, or a list that came late, leaves a file behind a rollback."""
    plant(monkeypatch)
    scenario = SCENARIOS[0]
    found = run_virtual(violations(13, of=FlatWorld))
    if not found:
        found = run_virtual(asleep(scenario, "rollback", after=False, sleeps=14, of=FlatWorld))

    assert found
