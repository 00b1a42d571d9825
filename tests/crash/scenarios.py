"""The jobs whose every write is a crash point: small, and each with something of its own."""

from __future__ import annotations

import json

from asynccommit.options.job import Mode
from tests.crash.jobs import DIAGNOSTICS, OTHER, REPORTS, Scenario
from tests.support.crashes import DEST

OLD_SUCCESS = json.dumps(
    {
        "name": "org.apache.hadoop.fs.s3a.commit.files.SuccessData/1",
        "timestamp": 1_700_000_000_000,
        "success": True,
        "jobId": "job_of_yesterday",
    }
)

OTHERS = {
    f"{DEST}/_temporary/{OTHER}/00/tasks/attempt_x/day=1/part-9": "of another job",
    f"{DEST}/_temporary/{OTHER}/00/manifests/": "",
    "/beside/file": "beside",
    f"{DEST}2/day=1/part-0": "of another table",
}
"""What is none of this job's business."""

OLD = {
    f"{DEST}/_SUCCESS": OLD_SUCCESS,
    f"{DEST}/day=1/part-old-0": "old one",
    f"{DEST}/day=1/part-old-1": "old two",
    f"{DEST}/day=3/part-old-2": "old three",
    f"{DEST}/day=3/hour=1/part-old-3": "old four",
    f"{DEST}/loose": "old loose",
}

SMALLEST = Scenario("smallest", ({"day=1/part-0": "a", "part-1": "b"},))

FRESH = Scenario(
    "fresh",
    (
        {"day=1/part-0": "a", "day=2/part-0": "b"},
        {"day=1/part-1": "c", "empty/": "", "day=2/.hidden": "h"},
    ),
)

APPEND = Scenario(
    "append",
    (
        {"day=1/part-0": "a", "day=1/hour=1/part-0": "b", "new/deep/nested/part-0": "c"},
        {"day=1/part-1": "d", "day=3/part-1": "e", "part-1": "f", "nothing/in/it/": ""},
        {"day=4/part with space %25": "g"},
    ),
    {**OLD, **OTHERS},
)

REPLACE_TABLE = Scenario(
    "replace_table",
    ({"day=1/part-0": "a", "day=2/part-0": "b"}, {"day=1/part-1": "c", "part-1": "d"}),
    {**OLD, **OTHERS, f"{DEST}/_kept/file": "kept", f"{DEST}/.kept": "kept too"},
    Mode.REPLACE_TABLE,
)

REPLACE_PARTITIONS = Scenario(
    "replace_partitions",
    ({"day=1/part-0": "a", "day=2/part-0": "b"}, {"day=1/part-1": "c", "day=3/hour=1/part-1": "d"}),
    {**OLD, **OTHERS, f"{DEST}/day=1/.kept": "kept", f"{DEST}/day=1/_kept/file": "kept too"},
    Mode.REPLACE_PARTITIONS,
)

FAIL = Scenario("fail", ({"day=1/part-0": "a"}, {"part-1": "b"}), OTHERS, Mode.FAIL)

OVERWRITE = Scenario(
    "overwrite",
    ({"day=1/part-0": "a"}, {"day=2/part-1": "b"}),
    {**OLD, **OTHERS},
    overwrite=(f"{DEST}/day=1", f"{DEST}/day=3"),
)

IN_THE_WAY = Scenario(
    "in_the_way",
    ({"day=1/part-old-0": "a", "loose/part-0": "b"}, {"day=3/hour=1/part-old-3": "c"}),
    {**OLD, **OTHERS},
    options={"delete_target_files": True},
)

REPORTED = Scenario(
    "reported",
    ({"day=1/part-0": "a"}, {"day=2/part-1": "b"}),
    {f"{REPORTS}/summary-of-others.json": "{}", f"{DIAGNOSTICS}/others/x": "x"},
    options={"report_directory": REPORTS, "diagnostics_directory": DIAGNOSTICS},
)

UNMARKED = Scenario(
    "unmarked",
    ({"day=1/part-0": "a"}, {"day=2/part-1": "b"}),
    OLD,
    options={"mark_success": False, "validate": False},
)

KEPT = Scenario("kept", ({"day=1/part-0": "a"},), OLD, options={"cleanup_skipped": True})

ABSOLUTE = Scenario(
    "absolute",
    ({"day=1/part-0": "a"}, {"day=2/part-1": "b"}),
    {**OLD, "/elsewhere/old/part-0": "old"},
    options={"allow_outside_destination": True},
    absolute={0: {"0-part-0": "/elsewhere/old/part-1"}, 1: {"0-part-1": "/elsewhere/new/part-1"}},
)

UNTAGGED = Scenario(
    "untagged",
    ({"day=1/part-0": "a", "day=2/part-0": "b"}, {"day=1/part-1": "c"}),
    OLD,
    etags=False,
    messages=False,
)

DIRECTORIES = Scenario(
    "directories",
    (
        {f"day=5/part-{n}": f"a{n}" for n in range(55)}
        | {f"day=6/hour={n % 2}/part-{n}": f"b{n}" for n in range(55)}
        | {"day=1/part-0": "c", "day=6/nothing/": ""},
        {"day=5/part-100": "d", "day=6/hour=0/part-100": "e"},
    ),
    {**OLD, **OTHERS},
)
"""A job that moves two directories of a task as they are."""

SCENARIOS = (
    SMALLEST,
    FRESH,
    APPEND,
    REPLACE_TABLE,
    REPLACE_PARTITIONS,
    FAIL,
    OVERWRITE,
    IN_THE_WAY,
    REPORTED,
    UNMARKED,
    KEPT,
    ABSOLUTE,
    UNTAGGED,
)
