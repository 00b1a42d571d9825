"""The index of a plan whose files several processes move.

JSON: ``type``, ``plan`` (its id), ``chunks`` (the digest of each chunk, in order) and ``tasks``
(task id -> accepted task attempt id). The commit record has its digest. Readers ignore unknown
fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from asynccommit.formats.commit_record import digests_of
from asynccommit.formats.fields import check_size, dump_object, load_object

TYPE = "asynccommit.CommitPlanIndex/1"
MAX_INDEX_BYTES = 256 * 1024 * 1024
"""Maximum size in bytes; a larger one is neither written nor read."""


@dataclass(frozen=True, slots=True)
class PlanIndex:
    """The parts of a commit record that grow with the job.

    Attributes:
        plan_id: id of the plan.
        chunks: the digest of each chunk of the plan, in order.
        tasks: task id -> accepted task attempt id.
    """

    plan_id: str
    chunks: tuple[str, ...]
    tasks: Mapping[str, str]


def encode_index(index: PlanIndex) -> bytes:
    """Return the JSON of an index. Raises ``ManifestError`` if it is invalid."""
    path = f"commit-plan-{index.plan_id}-index.json"
    value = {
        "type": TYPE,
        "plan": index.plan_id,
        "chunks": list(index.chunks),
        "tasks": dict(index.tasks),
    }
    data = dump_object(value, path, indent=False)
    decode_index(data, path, index.plan_id)
    return data


def decode_index(data: bytes, path: str, plan_id: str) -> PlanIndex:
    """Read the index of a plan. Raises ``ManifestError`` for anything else."""
    check_size(data, path, MAX_INDEX_BYTES)
    fields = load_object(data, path)
    fields.is_type(TYPE)
    if fields.name("plan") != plan_id:
        raise fields.wrong("plan", f"is not {plan_id!r}")
    return PlanIndex(plan_id, digests_of(fields, "chunks"), fields.names("tasks"))
