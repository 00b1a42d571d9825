"""Refusals are the service's: reason, status, words."""

from __future__ import annotations

import random
from typing import Any

import pytest

from asynccommit.errors import OptionError
from asynccommit.testing.models.adls.refusals import Refusal
from asynccommit.testing.models.fault_profiles import CLIMATES
from asynccommit.testing.models.fault_rules import Climate, Effect, Fault, FaultInjector, Reply
from asynccommit.testing.models.gcs.quotas import READS, WRITES
from asynccommit.testing.models.gcs.refusals import GCS, OPS, REASONS, GcsRefusal, refuse
from asynccommit.testing.models.latency import RequestLimit
from tests.testing.models.adls.model import Clock


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


def weather(*faults: Fault, **climate: Any) -> FaultInjector:
    """Return weather of these rules."""
    return FaultInjector(random.Random(1), Clock(), Climate(faults, **climate), GCS)


@pytest.mark.parametrize(
    "kind,effect,reply,reason,status",
    [
        ("before", Effect.NEVER, Reply.REFUSAL, "rateLimitExceeded", 429),
        ("after", Effect.NOW, Reply.REFUSAL, "backendError", 503),
        ("late", Effect.LATE, Reply.REFUSAL, "backendError", 503),
    ],
)
def test_each_kind(kind: str, effect: Effect, reply: Reply, reason: str, status: int) -> None:
    """What is answered where the rule says no code."""
    decision = weather(Fault(kind, reply="refusal")).decide("move", "data/a")

    assert (decision.kind, decision.effect, decision.reply) == (kind, effect, reply)
    assert isinstance(decision.refusal, GcsRefusal)
    assert (decision.refusal.reason, decision.refusal.status) == (reason, status)


def test_the_limit_s_answer() -> None:
    """Too many requests are refused with 429, and told to wait if the rule says how long."""
    sky = weather(limit=RequestLimit(1, 1, 2.5))
    sky.decide("move", "data/a")
    no = sky.decide("move", "data/a").refusal

    assert isinstance(no, GcsRefusal)
    assert (no.status, no.reason, dict(no.headers)) == (
        429,
        "rateLimitExceeded",
        {"Retry-After": "3"},
    )


@pytest.mark.parametrize("op", ["*", *OPS])
def test_operations_are_known(op: str) -> None:
    """In rules of this dialect."""
    rule = Fault.from_json({"kind": "before", "op": op, "code": "gatewayTimeout"}, dialect=GCS)
    climate = Climate.from_json({"faults": [rule.to_json()]}, GCS)

    assert climate == Climate((rule,))
    assert (
        FaultInjector(random.Random(1), Clock(), climate, GCS).decide(op, "x").refusal is not None
    )


def test_words_of_the_other_service_are_not_known() -> None:
    """Its operations and codes are named as wrong, each way round."""
    for rule in ({"kind": "before", "op": "flush"}, {"kind": "before", "code": "ServerBusy"}):
        with pytest.raises(OptionError, match=r"flush|ServerBusy"):
            Climate.from_json({"faults": [rule]}, GCS)
        Climate.from_json({"faults": [rule]})
    for rule in ({"kind": "before", "op": "move"}, {"kind": "before", "code": "backendError"}):
        with pytest.raises(OptionError, match=r"move|backendError"):
            Climate.from_json({"faults": [rule]})
        Climate.from_json({"faults": [rule]}, GCS)


@pytest.mark.parametrize("name", CLIMATES)
def test_named_climates_are_of_any_service(name: str) -> None:
    """They say no code, so each answer is the service's own."""
    sky = FaultInjector(random.Random(1), Clock(), CLIMATES[name], GCS)
    decisions = [sky.decide("move", "data/a") for _ in range(2000)]
    refusals = {type(found.refusal) for found in decisions if found.refusal}

    assert Climate.from_json(CLIMATES[name].to_json(), GCS) == CLIMATES[name]
    assert refusals <= {GcsRefusal}


def test_quotas_know_the_operations() -> None:
    """Every operation that quotas count is one of the weather's."""
    assert set(OPS) >= READS | WRITES
    assert repr(GCS) == "Dialect('gcs')"
