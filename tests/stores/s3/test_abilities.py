"""Each thing that a server lacks is seen by the requests of the probe, and nothing of it stays."""

from __future__ import annotations

from typing import Any

import pytest

from asynccommit.errors import RejectedError
from asynccommit.stores.s3.abilities import Abilities, find_abilities, refuse_lacking
from asynccommit.testing.models.adls.refusals import Refusal
from asynccommit.testing.models.fault_rules import CLEAR, Effect, FaultDecision, Reply
from asynccommit.testing.models.s3.client import SimS3Store, SimTrial
from asynccommit.testing.models.s3.model import S3Bucket, UploadRules
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.support.round_trips import S3
from tests.testing.models.s3.bench import new_bucket

# The model checks no checksums.
ALL = Abilities(*[True] * len(Abilities._fields))._replace(crc32=False, crc64nvme=False)
LACKS: dict[str, dict[str, bool]] = {
    "conditional_writes": {
        **dict.fromkeys(("puts", "versions", "completes", "replaces", "waits"), False)
    },
    "conditional_completions": {"completes": False, "waits": False},
    "matches": {"versions": False, "replaces": False},
    "abort_tells": {"tells": False},
    "abort_keeps": {"keeps": False},
    "abort_ends": {"ends": False, "clears": False},
}


def opened(bucket: S3Bucket, **options: Any) -> SimTrial:
    """Return the trial of a bucket."""
    return SimTrial(SimS3Store(S3, {"bucket": bucket, **options}), bucket, "/t/_probe")


async def test_a_service_that_lacks_nothing() -> None:
    """Every answer is yes, and the bucket is as empty as before."""
    bucket = new_bucket(UploadRules())

    assert await find_abilities(opened(bucket)) == ALL
    assert (bucket.objects, bucket.uploads.open) == ({}, {})


@pytest.mark.parametrize("rule", LACKS)
async def test_a_server_that_lacks_something(rule: str) -> None:
    """The answer to just that is no."""
    bucket = new_bucket(UploadRules()._replace(**{rule: False}))

    assert await find_abilities(opened(bucket)) == ALL._replace(**LACKS[rule])
    assert bucket.objects == {}


FAILED = Refusal(500, "InternalError", "We encountered an internal error. Please try again.")
DISTURBED: dict[str, FaultDecision] = {
    "lost": FaultDecision(reply=Reply.CUT, kind="lost"),
    "late": FaultDecision(effect=Effect.LATE, late=60, reply=Reply.CUT, kind="late"),
    "failed and late": FaultDecision(
        effect=Effect.LATE, late=60, reply=Reply.REFUSAL, refusal=FAILED, kind="failed"
    ),
    "twice": FaultDecision(effect=Effect.TWICE, kind="twice"),
    "again": FaultDecision(effect=Effect.AGAIN, late=0.05, kind="again"),
}


class OneDisturbed:
    """Weather that strikes one request."""

    def __init__(self, number: int, how: FaultDecision) -> None:
        self.left = number
        self.how = how

    def decide(self, op: str, path: str) -> FaultDecision:
        """Strike the request of that number."""
        self.left -= 1
        return self.how if self.left == 0 else CLEAR


@pytest.mark.parametrize(
    "rule, how",
    [
        *((rule, "lost") for rule in LACKS),
        *(("abort_ends", how) for how in DISTURBED if how != "lost"),
    ],
)
def test_a_disturbed_request_never_makes_a_yes(rule: str, how: str) -> None:
    """Whichever request is lost, late or doubled: no answer, or the safe one."""

    async def found(number: int) -> Abilities | None:
        bucket = new_bucket(UploadRules()._replace(**{rule: False}))
        try:
            return await find_abilities(
                opened(bucket, weather=OneDisturbed(number, DISTURBED[how]))
            )
        except Exception:
            return None

    true = ALL._replace(**LACKS[rule])
    answers = [run_virtual(found(number)) for number in range(1, 26)]
    wrong = [one for one in answers if one is not None and any(map(bool.__gt__, one, true))]

    assert wrong == []
    assert true in answers


@pytest.mark.parametrize(
    "lacks, request_",
    [
        ("puts", "put .*If-None-Match of PutObject"),
        ("completes", "complete_upload .*If-None-Match of CompleteMultipartUpload"),
        ("ends", "abort_upload .*AbortMultipartUpload"),
    ],
)
def test_what_no_job_can_do_without(lacks: str, request_: str) -> None:
    """The error names server, request, danger and remedy."""
    refuse_lacking(ALL, "s3.example", "/t")
    with pytest.raises(RejectedError, match=rf"{request_}.*could.*use another server") as caught:
        refuse_lacking(ALL._replace(**{lacks: False}), "s3.example", "/t")

    assert "s3.example" in str(caught.value)
