"""An emulated account that refuses the clean-up of a commit until a test lets it go on."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from asynccommit.testing.emulators.adls.emulator import AdlsEmulator, EmulatorThread
from asynccommit.testing.models.adls.refusals import refusal
from asynccommit.testing.models.fault_rules import (
    Effect,
    FaultDecision,
    FaultInjector,
    Reply,
)


class Held(FaultInjector):
    """The weather of an account that refuses a job's requests after ``_SUCCESS``.

    Attributes:
        job_id: the job whose clean-up is refused; ``None`` for none.
        code: the refusal: to be tried again, or not.
    """

    job_id: str | None = None
    code = "ServerBusy"
    visible = False

    def decide(self, op: str, path: str) -> FaultDecision:
        """Refuse the changes that come after the marker, in the directory of the job."""
        changes = op in ("rename", "delete")
        if changes and self.visible and self.job_id and self.job_id in path:
            busy = refusal(self.code)
            return FaultDecision(effect=Effect.NEVER, reply=Reply.REFUSAL, refusal=busy)
        self.visible = self.visible or (op == "rename" and path.endswith("/_SUCCESS"))
        return super().decide(op, path)


@dataclass
class HeldAccount:
    """An account that holds the clean-up of one job."""

    emulator: EmulatorThread
    weather: Held

    @property
    def url(self) -> str:
        """The destination of the jobs."""
        return f"abfs://data@{self.emulator.account}.dfs.core.windows.net/out"

    @property
    def options(self) -> dict[str, str]:
        """The storage options that reach the account."""
        return {"connection_string": self.emulator.connection_string}

    def hold(self, job_id: str) -> None:
        """Refuse the clean-up of this job."""
        self.weather.visible = False
        self.weather.job_id = job_id

    def release(self) -> None:
        """Refuse nothing any more."""
        self.weather.job_id = None

    def names(self) -> set[str]:
        """Return the names at the destination."""
        page = self.emulator.do(lambda running: running.model.list("data", "out"))
        return {path.rpartition("/")[2] for path, _ in page.entries}


@contextmanager
def held_account(emulator: EmulatorThread) -> Iterator[HeldAccount]:
    """Create a container on an emulator, and release what is held in the end."""

    def prepare(running: AdlsEmulator) -> Held:
        running.model.create_filesystem("data")
        weather = Held(random.Random(0), time.monotonic)
        running.weather = weather
        return weather

    weather = emulator.do(prepare)
    account = HeldAccount(emulator, weather)
    try:
        yield account
    finally:
        account.release()
