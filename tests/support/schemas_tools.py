"""The schemas of the JSON of commands that are not about jobs of this package."""

from __future__ import annotations

from asynccommit.formats.commit_record import Owner
from asynccommit.loadtest.report import LoadReport
from asynccommit.mapreduce.markers import Action
from asynccommit.mapreduce.staging import StagingState
from asynccommit.simulate.memory import Memory
from asynccommit.simulate.run import Figures
from asynccommit.streaming.verify import Wrong
from tests.support.schema_parts import (
    NULL,
    REAL,
    TEXT,
    TEXTS,
    WHOLE,
    YES,
    Schema,
    either,
    obj,
    of,
    partly,
    record,
    rows,
)

UPLOAD = {"key": TEXT, "upload_id": TEXT}
UPLOADS = obj(
    destination=TEXT,
    uploads=rows(
        obj(
            **UPLOAD,
            age=of(float | None),
            jobs=TEXTS,
            maybe=TEXTS,
            parts=WHOLE,
            bytes=WHOLE,
            month=REAL,
        )
    ),
    parts=WHOLE,
    bytes=WHOLE,
    price=REAL,
    month=REAL,
    jobs=rows(obj(job_id=TEXT, destination=TEXT, sets=WHOLE, begun=YES, uploads=WHOLE)),
    warnings=TEXTS,
)
ABORTED = {"destination": TEXT, "kept": rows(obj(**UPLOAD, reason=TEXT)), "warnings": TEXTS}
UPLOADS_ABORT = either(
    obj(would_abort=rows(obj(**UPLOAD)), **ABORTED),
    obj(
        aborted=rows(obj(**UPLOAD)),
        ended=rows(obj(**UPLOAD)),
        failures=rows(obj(**UPLOAD, error=TEXT)),
        **ABORTED,
    ),
)

FINDINGS = rows(
    obj(
        file=TEXT,
        wrong={"enum": [one.name.lower() for one in Wrong]},
        problem=TEXT,
        remedy=TEXT,
    )
)
NEWEST = of(int | None)
SINK_LOG = obj(
    destination=TEXT,
    newest=NEWEST,
    interval=of(int | None),
    batches=rows(obj(file=TEXT, bytes=WHOLE, entries=WHOLE, query=of(str | None))),
    not_read=TEXTS,
    files=rows(obj(path=TEXT, bytes=WHOLE, modified=WHOLE)),
    unlisted=WHOLE,
)
SINK_LOG_VERIFY = obj(
    destination=TEXT,
    newest=NEWEST,
    files=WHOLE,
    unlisted=WHOLE,
    findings=FINDINGS,
    more=WHOLE,
    running=TEXTS,
    over=TEXTS,
)
CHANGES = rows(obj(file=TEXT, what=TEXTS, bytes=WHOLE))
REPAIRED = {
    "destination": TEXT,
    "kept": TEXTS,
    "left": FINDINGS,
    "over": TEXTS,
    "deleted": TEXTS,
}
SINK_LOG_REPAIR = either(obj(would_repair=CHANGES, **REPAIRED), obj(repaired=CHANGES, **REPAIRED))

BY_NAME: Schema = {"type": "object", "additionalProperties": TEXT}
HIVE = obj(
    destination=TEXT,
    dry_run=YES,
    directories=WHOLE,
    files=WHOLE,
    duplicates=rows(obj(stays=TEXT, superfluous=TEXTS)),
    unfinished=TEXTS,
    empty_partitions=TEXTS,
    missing_buckets=TEXTS,
    conflicts=BY_NAME,
    passed_over=TEXTS,
    deleted=TEXTS,
    created=TEXTS,
    removed=TEXTS,
    kept=BY_NAME,
)

MAPREDUCE = obj(
    place=TEXT,
    jobs=rows(
        obj(
            job_id=TEXT,
            user=TEXT,
            place=TEXT,
            state=of(StagingState),
            markers=TEXTS,
            owner=either(record(Owner, epoch=WHOLE), NULL),
            silent=of(float | None),
            attempts=WHOLE,
            modified=REAL,
            name=TEXT,
            output=TEXT,
            committer=TEXT,
            repeatable=of(bool | None),
            would=rows(of(Action)),
            advice=rows(obj(says=TEXT, command=TEXT)),
            problems=TEXTS,
        )
    ),
    warnings=TEXTS,
)

LATENCY = partly(
    obj(model={"enum": ["fixed", "uniform", "lognormal"]}),
    seconds=REAL,
    low=REAL,
    high=REAL,
    median=REAL,
    sigma=REAL,
    tail=obj(probability=REAL, seconds=REAL),
)
SETUP = obj(
    store=TEXT,
    latency=LATENCY,
    limit=either(obj(rate=REAL, burst=REAL, retry_after=of(float | None)), NULL),
    doubling=of(float | None),
    in_flight=WHOLE,
    faults=TEXT,
    seed=WHOLE,
    options={"type": "object"},
)
SIMULATE = record(
    Figures,
    real=None,
    memory=record(Memory, engine=WHOLE),
    files_per_second=REAL,
    all_requests=WHOLE,
    extrapolated=YES,
    simulated=rows(obj(files=WHOLE, tasks=WHOLE, seconds=REAL, real=REAL)),
    unlimited=either(obj(seconds=REAL, files_per_second=REAL), NULL),
    real_seconds=REAL,
    setup=SETUP,
)

EMULATE = partly(
    obj(endpoint=TEXT, port=WHOLE, control=TEXT),
    url=TEXT,
    account=TEXT,
    accounts=TEXTS,
    filesystems=TEXTS,
    connection_string=TEXT,
    buckets=TEXTS,
    environ=BY_NAME,
    target=TEXT,
    ca_file=TEXT,
)
DEMO = obj(proven=YES, checks={"type": "object", "additionalProperties": YES})

TOOLS: dict[str, tuple[str, Schema]] = {
    "uploads": ("asynccommit uploads list", UPLOADS),
    "uploads-abort": ("asynccommit uploads abort", UPLOADS_ABORT),
    "sink-log": ("asynccommit sink-log show", SINK_LOG),
    "sink-log-verify": ("asynccommit sink-log verify", SINK_LOG_VERIFY),
    "sink-log-repair": ("asynccommit sink-log repair", SINK_LOG_REPAIR),
    "sink-log-adopt": (
        "asynccommit sink-log adopt",
        obj(
            destination=TEXT,
            dry_run=YES,
            before=either(TEXT, NULL),
            query=TEXT,
            newest=WHOLE,
            checkpoint=either(TEXT, NULL),
        ),
    ),
    "hive": ("asynccommit hive dedup", HIVE),
    "mapreduce": ("asynccommit mapreduce status", MAPREDUCE),
    "simulate": ("asynccommit simulate", SIMULATE),
    "loadtest": ("asynccommit loadtest", record(LoadReport)),
    "emulate": ("asynccommit emulate, once it serves", EMULATE),
    "demo": ("asynccommit demo; each demo has further fields", DEMO),
    "man": ("asynccommit man", obj(page=TEXT)),
    "version": ("asynccommit --version", obj(version=TEXT)),
}
"""Name of the file -> the commands, and the schema without its head."""
