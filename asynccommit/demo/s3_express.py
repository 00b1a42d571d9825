"""Run the demo on an emulated directory bucket of S3: renames, a killed driver, lost responses."""

from __future__ import annotations

from pathlib import Path

from asynccommit.demo.emulated import serving
from asynccommit.demo.flights import Say, prepare
from asynccommit.demo.outcome import StoreBehaviour
from asynccommit.demo.python_tasks import KilledAndResumed, ResumedOutcome

EXPRESS_WEATHER = StoreBehaviour(latency="5ms", limit=3500, lost="5%")
BUCKET = "flights--use1-az4--x-s3"


def run_on_s3_express(
    keep: Path | None = None,
    *,
    weather: StoreBehaviour = EXPRESS_WEATHER,
    say: Say = print,
) -> ResumedOutcome:
    """Commit to an emulated directory bucket, kill the driver, and resume.

    Args:
        keep: directory for the log, new or empty; ``demo-out`` by default.
        weather: behaviour of the emulated store; responses are lost of renames only.
        say: called with progress messages.

    Raises:
        OptionError: the directory is not empty.
        AsyncCommitError: the emulator or a process failed.
    """
    log = prepare(keep) / "emulator.log"
    arguments = ["-b", BUCKET, "--latency", weather.latency, "--limit", str(weather.limit)]
    with serving("s3-express", [*arguments, "--lost", weather.lost], log) as emulator:
        say(f"an emulator serves {emulator.endpoint}: {weather.latency} a response")
        storage = {"endpoint_url": emulator.endpoint, "key": "test", "secret": "test"}
        job = KilledAndResumed(emulator, f"s3://{BUCKET}/table", storage, "rename", "renames")
        return job.go(str(log), say)
