"""Weather that speaks to clients of Google Cloud Storage."""

from __future__ import annotations

import random
from typing import Any

import pytest

from asynccommit.errors import OptionError
from asynccommit.testing.models.fault_profiles import CLIMATES
from asynccommit.testing.models.fault_rules import Climate, Effect, Fault, FaultInjector, Reply
from asynccommit.testing.models.gcs.dialect import GCS, OPS
from asynccommit.testing.models.gcs.quotas import READS, WRITES
from asynccommit.testing.models.gcs.refusals import GcsRefusal
from asynccommit.testing.models.latency import RequestLimit
from tests.testing.models.adls.model import Clock


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
