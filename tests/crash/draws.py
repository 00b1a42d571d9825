"""What one seed makes of a job: its files, its options, its weather."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from asynccommit.options.job import Mode, OnFailure
from asynccommit.testing.models.fault_rules import AGAIN, CUT_BEFORE, LATE, TWICE, Climate, Fault
from asynccommit.testing.models.latency import Latency
from tests.crash.jobs import DIAGNOSTICS, REPORTS, Scenario
from tests.crash.scenarios import OLD, OTHERS
from tests.support.storms import STORM

LEASE = 300.0
_LATENCY = Latency("lognormal", 0.03, 0.8)
_LOST = Fault(CUT_BEFORE, probability=0.01)


def draw_scenario(rng: random.Random) -> Scenario:
    """Return a job with a few tasks, files and directories, in one of the modes."""
    mode = rng.choice([Mode.APPEND, Mode.APPEND, Mode.REPLACE_TABLE, Mode.REPLACE_PARTITIONS])
    places = ["day=1/", "day=2/", "day=3/hour=1/", "new/deep/"]
    places += [""] if mode is not Mode.REPLACE_PARTITIONS else []
    tasks = [
        {
            f"{rng.choice(places)}part-{task}-{number}": f"content {task} {number}"
            for number in range(rng.randint(1, 5))
        }
        for task in range(rng.randint(1, 4))
    ]
    options = draw_options(rng)
    if options["delete_target_files"] and mode is Mode.APPEND:
        tasks[0] |= {"day=1/part-old-0": "in the place of a file", "loose/part-0": "of another"}
    absolute = {0: {"0-away": "/elsewhere/new/part-0"}} if rng.random() < 0.15 else {}
    return Scenario(
        "drawn",
        tuple(tasks),
        rng.choice([{}, OTHERS, {**OLD, **OTHERS}, OLD]),
        mode,
        options=options,
        absolute=absolute,
        etags=rng.random() < 0.85,
        messages=bool(absolute) or rng.random() < 0.8,
    )


def draw_options(rng: random.Random) -> dict[str, Any]:
    """Return how the job is committed."""
    options: dict[str, Any] = {
        "allow_outside_destination": True,
        "delete_target_files": rng.random() < 0.3,
    }
    if rng.random() < 0.15:
        options["on_failure"] = OnFailure.ROLLBACK
    if rng.random() < 0.1:
        options["mark_success"] = False
    if rng.random() < 0.1:
        options["validate"] = False
    if rng.random() < 0.2:
        options |= {"report_directory": REPORTS, "diagnostics_directory": DIAGNOSTICS}
    return options


def draw_climate(rng: random.Random, seed: int) -> Climate:
    """Return a storm, in which requests are lost too; in some late is later than a lease.

    In every third storm requests are executed twice as well, the second time at once or late; in
    every ninth, most of them.
    """
    late = Latency("uniform", 0.0, LEASE * 3) if rng.random() < 0.3 else None
    rules = [
        replace(rule, delay=late) if late is not None and rule.kind == LATE else rule
        for rule in STORM.faults
    ]
    if seed // 7 % 3 == 0:
        share = 0.3 if seed // 7 % 9 == 0 else 0.03
        rules += [
            Fault(TWICE, probability=share),
            Fault(AGAIN, probability=share, delay=Latency(first=0.0)),
            Fault(AGAIN, probability=share / 3, delay=late),
        ]
    return Climate((*rules, _LOST), _LATENCY)
