"""Refusals are the service's: reason, status, words."""

from __future__ import annotations

import pytest

from asynccommit.testing.models.adls.refusals import Refusal
from asynccommit.testing.models.gcs.refusals import REASONS, refuse


@pytest.mark.parametrize(
    "reason,status",
    [
        ("notModified", 304),
        ("invalid", 400),
        ("required", 400),
        ("userProjectMissing", 400),
        ("authError", 401),
        ("forbidden", 403),
        ("retentionPolicyNotMet", 403),
        ("objectUnderActiveHold", 403),
        ("notFound", 404),
        ("methodNotAllowed", 405),
        ("uploadBrokenConnection", 408),
        ("conflict", 409),
        ("gone", 410),
        ("conditionNotMet", 412),
        ("requestedRangeNotSatisfiable", 416),
        ("rateLimitExceeded", 429),
        ("internalError", 500),
        ("backendError", 503),
        ("gatewayTimeout", 504),
    ],
)
def test_reasons_have_the_documented_status(reason: str, status: int) -> None:
    """As in https://cloud.google.com/storage/docs/json_api/v1/status-codes."""
    assert REASONS[reason][0] == status
    assert refuse(reason).status == status


def test_words_can_be_given() -> None:
    """Message, place and headers are as told; the service's own words stand in else."""
    no = refuse("invalid", "No.", location_type="parameter", location="x", headers={"A": "b"})

    assert (no.message, no.location_type, no.location) == ("No.", "parameter", "x")
    assert no.headers == {"A": "b"}
    assert str(no) == "400 invalid: No."
    assert refuse("conditionNotMet").message.startswith("At least one of the pre-conditions")


def test_a_refusal_is_what_weather_answers() -> None:
    """It is a ``Refusal`` of the same code, so that both dialects can be struck alike."""
    no = refuse("rateLimitExceeded")

    assert isinstance(no, Refusal)
    assert no.code == no.reason == "rateLimitExceeded"
    assert (no.domain, refuse("notFound").domain) == ("usageLimits", "global")


def test_an_unknown_reason_is_the_server_s_fault() -> None:
    """It has the status 500 and itself as the message."""
    no = refuse("strange")

    assert (no.status, no.reason, no.message) == (500, "strange", "strange")
