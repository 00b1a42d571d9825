"""A job on an emulated account that is slow, strict and loses responses.

``python -m tests.support.slow_job FILE`` writes its page, of which docs/img has a picture.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from asynccommit import sync
from asynccommit.results import JobReport
from asynccommit.testing import AdlsEmulator, Climate, running_emulator


def slow_climate(rate: int) -> Climate:
    """Return an account that takes so many requests a second and loses 3% of the responses."""
    return Climate.from_json(
        {
            "latency": {"model": "lognormal", "median": 0.03, "sigma": 0.4},
            "limit": {"rate": rate, "burst": rate / 4},
            "faults": [{"kind": "cut", "op": "*", "probability": 0.03}],
        }
    )


def commit_slow_job(files: int, rate: int, partitions: int = 12) -> JobReport:
    """Commit a job of so many files, whose directories differ in size."""
    with running_emulator(filesystems=["lake"]) as emulator:
        storage = {"connection_string": emulator.connection_string}
        options = {"asynccommit.cleanup": "wait"}
        with sync.open_job("abfs://lake/flights", storage_options=storage, options=options) as job:
            for number in range(4):
                with job.task(number) as task:
                    for part in range(number, files, 4):
                        day = int((part / files) ** 2 * partitions) + 1
                        task.put(f"month={day:02d}/part-{part:05d}.parquet", b"x" * (part % 900))
            emulator.do(partial(_set, slow_climate(rate)))
        emulator.do(partial(_set, Climate()))
        return job.report


def _set(climate: Climate, emulator: AdlsEmulator) -> None:
    emulator.weather.climate = climate


def main(arguments: Sequence[str]) -> None:
    """Write the page."""
    commit_slow_job(3000, 400).save_html(Path(arguments[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
