"""Rules and what they decide: by operation, path, turn and chance, the same for the same seed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import OptionError
from asynccommit.testing.models.adls.refusals import CODES, Refusal
from asynccommit.testing.models.fault_rules import (
    ADLS,
    CLEAR,
    KINDS,
    OPS,
    REPLIES,
    Climate,
    Dialect,
    Effect,
    Fault,
    FaultDecision,
    FaultInjector,
    Reply,
    take_effect,
)
from asynccommit.testing.models.latency import Latency, RequestLimit, Tail
from tests.testing.models.adls.model import Clock


def weather(
    *faults: Fault, seed: int = 1, clock: Clock | None = None, **climate: Any
) -> FaultInjector:
    """Return weather of these rules."""
    return FaultInjector(random.Random(seed), clock or Clock(), Climate(faults, **climate))


def kinds(sky: FaultInjector, count: int, op: str = "rename", path: str = "d/f") -> list[str]:
    """Return what strikes each of some equal requests."""
    return [sky.decide(op, path).kind for _ in range(count)]


def test_calm_is_nothing() -> None:
    """Without rules, latency and limit every request is let be, and counted."""
    sky = weather()

    assert sky.decide("rename", "f") is CLEAR
    assert FaultDecision(0.0, Effect.NOW, 0.0, 0.0, Reply.TRUE, None, "") == CLEAR
    assert sky.requests == {"rename": 1}


@pytest.mark.parametrize(
    "kind,effect,reply,code",
    [
        ("before", Effect.NEVER, Reply.REFUSAL, "ServerBusy"),
        ("after", Effect.NOW, Reply.REFUSAL, "OperationTimedOut"),
        ("cut_before", Effect.NEVER, Reply.CUT, ""),
        ("cut", Effect.NOW, Reply.CUT, ""),
        ("late", Effect.LATE, Reply.CUT, "OperationTimedOut"),
        ("slow", Effect.NOW, Reply.TRUE, ""),
        ("twice", Effect.TWICE, Reply.TRUE, ""),
        ("again", Effect.AGAIN, Reply.TRUE, ""),
    ],
)
def test_each_kind(kind: str, effect: Effect, reply: Reply, code: str) -> None:
    """Whether the request is done, and what is answered."""
    decision = weather(Fault(kind)).decide("rename", "f")

    assert (decision.kind, decision.effect, decision.reply) == (kind, effect, reply)
    assert (decision.refusal.code if decision.refusal else "") == code
    assert decision.late == (1.0 if kind in ("late", "again") else 0.0)
    assert decision.after == (1.0 if kind == "slow" else 0.0)


@pytest.mark.parametrize(
    "kind, now, at_last, answer",
    [
        ("slow", 1, 1, 1),
        ("late", 0, 1, None),
        ("before", 0, 0, None),
        ("twice", 2, 2, 2),
        ("again", 1, 2, 1),
    ],
)
def test_how_often_a_request_is_executed(
    kind: str, now: int, at_last: int, answer: int | None
) -> None:
    """The response is that of the execution which the client waits for."""
    done: list[str] = []
    held: list[Callable[[], object]] = []

    def perform() -> int:
        done.append("again" if done else "first")
        return len(done)

    decision = weather(Fault(kind)).decide("append", "f")
    told = take_effect(decision, perform, lambda _, act: held.append(act))
    assert (told, len(done)) == (answer, now)

    for act in held:
        act()
    assert len(done) == at_last


@pytest.mark.parametrize("reply", REPLIES)
def test_late_may_be_answered_in_each_way(reply: str) -> None:
    """Cut, never or with an error; the effect comes after its delay."""
    rule = Fault("late", delay=Latency(first=3.0), reply=reply, code="InternalError")
    decision = weather(rule).decide("rename", "f")

    assert (decision.effect, decision.late, decision.reply.value) == (Effect.LATE, 3.0, reply)
    assert decision.refusal is not None
    assert decision.refusal.status == 500


def test_error_is_the_service_s() -> None:
    """Code, message and the time to wait are as the rule says."""
    rule = Fault("before", code="ServerBusy", message="Ingress is over.", retry_after=2.5)
    no = weather(rule).decide("create", "f").refusal

    assert no is not None
    assert (no.status, no.code, no.message) == (503, "ServerBusy", "Ingress is over.")
    assert dict(no.headers) == {"Retry-After": "3"}


def test_rule_matches_operation_and_path() -> None:
    """Others pass: by name, and by a regular expression that is found in the path."""
    sky = weather(Fault("cut", op="rename", path=r"part-\d+\.parquet$"))

    assert sky.decide("rename", "t/part-7.parquet").kind == "cut"
    assert sky.decide("rename", "t/part-x.parquet").kind == ""
    assert sky.decide("create", "t/part-7.parquet").kind == ""
    assert kinds(weather(Fault("cut")), 1, op="lease") == ["cut"]


def test_turns() -> None:
    """Some pass first, then each so many-th is struck, so often at most."""
    sky = weather(Fault("cut", skip=2, every=3, times=2))

    assert kinds(sky, 12) == ["", "", "cut", "", "", "cut", "", "", "", "", "", ""]


def test_first_rule_that_strikes_decides() -> None:
    """The next one gets its turn when the first is used up."""
    sky = weather(Fault("before", times=1), Fault("cut", times=1))

    assert kinds(sky, 3) == ["before", "cut", ""]


def test_slow_adds_up_with_others() -> None:
    """A slow request may fail as well."""
    slow = Fault("slow", delay=Latency(first=0.5))
    decision = weather(slow, slow, Fault("after")).decide("rename", "f")

    assert (decision.kind, decision.after) == ("after", 1.0)
    assert weather(slow).decide("rename", "f").kind == "slow"


def test_chance() -> None:
    """Of many requests about as many are struck as the probability says."""
    struck = sum(map(bool, kinds(weather(Fault("cut", probability=0.05)), 10_000)))

    assert 400 < struck < 600


@pytest.mark.parametrize("seed", range(5))
def test_same_seed_same_weather(seed: int) -> None:
    """Two runs of one seed agree in every decision and in the next random number."""
    rules = (
        Fault("cut", probability=0.05),
        Fault("after", probability=0.02),
        Fault("late", probability=0.01, delay=Latency("uniform", 0.1, 3.0)),
        Fault("slow", probability=0.1, delay=Latency("lognormal", 0.1, 1.0)),
    )
    runs = []
    for _ in range(2):
        rng = random.Random(seed)
        sky = FaultInjector(rng, Clock(), Climate(rules, Latency("uniform", 0.0, 1.0)))
        seen = [sky.decide("rename", f"f{n}")._replace(refusal=None) for n in range(500)]
        runs.append((seen, sky.struck, rng.random()))

    assert runs[0] == runs[1]


def test_latency_comes_before_the_effect() -> None:
    """Every request waits, struck or not."""
    sky = weather(Fault("cut", skip=1), latency=Latency(first=0.02))

    assert [sky.decide("head", "f").before for _ in range(2)] == [0.02, 0.02]


def test_limit_refuses_the_rest() -> None:
    """In a second no more than rate and burst pass; the others are told to wait."""
    clock = Clock()
    sky = weather(clock=clock, limit=RequestLimit(100.0, 10.0, 2.0), latency=Latency(first=0.01))
    passed = 0
    for _ in range(1000):
        decision = sky.decide("rename", "f")
        passed += decision.effect is Effect.NOW
        clock.now += 0.001

    assert 108 <= passed <= 110
    assert sky.struck == {"limit": 1000 - passed}
    assert decision.kind == "limit"
    assert decision.before == 0.01
    assert decision.refusal is not None
    assert decision.refusal.code == "ServerBusy"
    assert decision.refusal.message == CODES["ServerBusy"][1]
    assert dict(decision.refusal.headers) == {"Retry-After": "2"}


def test_limit_recovers() -> None:
    """After a pause the burst is there again, and no more than that."""
    clock = Clock()
    sky = weather(clock=clock, limit=RequestLimit(10.0, 5.0))
    assert kinds(sky, 7) == [""] * 5 + ["limit"] * 2
    clock.now += 3600

    assert kinds(sky, 7) == [""] * 5 + ["limit"] * 2


def test_climate_changes_in_mid_run() -> None:
    """Rules are added behind the others, replaced, and removed."""
    sky = weather(Fault("cut", times=2))
    assert kinds(sky, 1) == ["cut"]
    sky.add(Fault("before"))
    assert kinds(sky, 2) == ["cut", "before"]
    sky.climate = Climate((Fault("after", times=1),))
    assert kinds(sky, 2) == ["after", ""]
    sky.add(Fault("cut"))
    sky.clear()

    assert sky.climate == Climate()
    assert sky.decide("rename", "f") is CLEAR


def test_report_counts() -> None:
    """What was asked, what struck, and each rule with how often it did; all fit for JSON."""
    sky = weather(Fault("cut", op="rename", times=2), Fault("before", op="head"))
    kinds(sky, 3)
    kinds(sky, 1, op="head")
    report = json.loads(json.dumps(sky.report()))

    assert report["requests"] == {"rename": 3, "head": 1}
    assert report["struck"] == {"cut rename": 2, "before head": 1}
    assert [rule["struck"] for rule in report["climate"]["faults"]] == [2, 1]
    assert "Fault" in repr(sky)


SECONDS = st.floats(0, 1e3)
LATENCIES = st.one_of(
    st.builds(
        Latency,
        st.just("fixed"),
        SECONDS,
        tail=st.none() | st.builds(Tail, st.floats(0, 1), SECONDS),
    ),
    st.builds(lambda low, more: Latency("uniform", low, low + more), SECONDS, SECONDS),
    st.builds(Latency, st.just("lognormal"), SECONDS, st.floats(0, 3)),
)
FAULTS = st.builds(
    Fault,
    kind=st.sampled_from(KINDS),
    op=st.sampled_from(["*", *OPS]),
    path=st.sampled_from(["", "part-", r"^a/.*\.tmp$"]),
    probability=st.floats(0, 1),
    skip=st.integers(0, 100),
    every=st.integers(1, 100),
    times=st.none() | st.integers(0, 100),
    code=st.sampled_from(["", *CODES]),
    message=st.none() | st.text(),
    retry_after=st.none() | SECONDS,
    delay=st.none() | LATENCIES,
    reply=st.sampled_from(REPLIES),
)
LIMITS = st.builds(RequestLimit, st.floats(0.1, 1e6), st.floats(1, 1e6), st.none() | SECONDS)


@given(st.builds(Climate, st.lists(FAULTS, max_size=3).map(tuple), LATENCIES, st.none() | LIMITS))
def test_json_round_trip(climate: Climate) -> None:
    """What is written is read again, as an object, as text and as bytes."""
    text = json.dumps(climate.to_json())

    assert Climate.from_json(climate.to_json()) == climate
    assert Climate.from_json(text) == climate
    assert Climate.from_json(text.encode()) == climate


def test_json_of_the_documentation() -> None:
    """The short forms: what is left out has its default, and numbers stand for themselves."""
    climate = Climate.from_json(
        """{"faults": [{"kind": "after", "op": "rename", "probability": 0.02},
                       {"kind": "slow", "delay": 2, "every": 100}],
            "latency": 0.02, "limit": 1000}"""
    )

    assert climate == Climate(
        (
            Fault("after", "rename", probability=0.02),
            Fault("slow", delay=Latency(first=2.0), every=100),
        ),
        Latency(first=0.02),
        RequestLimit(1000.0, 100.0),
    )
    assert Climate.from_json({}) == Climate()


@pytest.mark.parametrize(
    "value,said",
    [
        ("{", "not JSON"),
        ("[]", "climate is []"),
        ({"rules": []}, "climate.rules is not a field; there are faults, latency, limit"),
        ({"faults": {}}, "climate.faults is {}: expected a list"),
        ({"faults": [7]}, "faults[0] is 7: expected an object"),
        ({"faults": [{}]}, "faults[0].kind is missing"),
        (
            {"faults": [{"kind": "cut"}, {"kind": "burn"}]},
            "faults[1].kind is 'burn': expected one of",
        ),
        ({"faults": [{"kind": "cut", "op": "copy"}]}, "faults[0].op is 'copy': expected one of *,"),
        ({"faults": [{"kind": "cut", "path": "("}]}, "faults[0].path is '(', not a regular"),
        ({"faults": [{"kind": "cut", "path": 1}]}, "faults[0].path is 1: expected a string"),
        (
            {"faults": [{"kind": "cut", "probability": 2}]},
            "probability is 2.0: expected a number from 0",
        ),
        (
            {"faults": [{"kind": "cut", "probability": "x"}]},
            "probability is 'x': expected a number",
        ),
        ({"faults": [{"kind": "cut", "skip": -1}]}, "skip is -1: expected a number of at least 0"),
        ({"faults": [{"kind": "cut", "skip": 1.5}]}, "skip is 1.5: expected a whole number"),
        (
            {"faults": [{"kind": "cut", "every": 0}]},
            "every is 0: expected a whole number of at least 1",
        ),
        ({"faults": [{"kind": "cut", "times": True}]}, "times is True: expected a number"),
        ({"faults": [{"kind": "before", "code": "Nope"}]}, "code is 'Nope'"),
        ({"faults": [{"kind": "before", "message": 1}]}, "message is 1: expected a string"),
        ({"faults": [{"kind": "late", "reply": "true"}]}, "reply is 'true': expected one of cut,"),
        (
            {"faults": [{"kind": "slow", "delay": "x"}]},
            "faults[0].delay is 'x': expected an object",
        ),
        ({"faults": [{"kind": "cut", "pth": ""}]}, "faults[0].pth is not a field"),
    ],
)
def test_bad_json_is_named(value: object, said: str) -> None:
    """The error says which field is wrong and what would be right."""
    with pytest.raises(OptionError) as caught:
        Climate.from_json(value)

    assert said in str(caught.value)


def test_bad_rules_are_refused_in_code_too() -> None:
    """A kind or reply that is none does not pass for another."""
    with pytest.raises(OptionError, match=r"fault\.kind is 'brfore'"):
        Fault("brfore")
    with pytest.raises(OptionError, match=r"fault\.reply is 'true'"):
        Fault("late", reply="true")


TEAPOT = Dialect(
    name="teapot",
    ops=("brew",),
    codes={"Short": (418, "Short."), "Stout": (419, "Stout.")},
    busy="Short",
    timed_out="Stout",
    refuse=lambda code, message, headers: Refusal(418, code, message or "Said.", headers),
)


def test_a_dialect_says_how_to_refuse() -> None:
    """Its codes stand in where a rule says none, and for the limit; its words too."""
    rules = (Fault("before", times=1), Fault("after", times=1), Fault("late", code="Short"))
    sky = FaultInjector(random.Random(1), Clock(), Climate(rules, limit=RequestLimit(1, 3)), TEAPOT)
    refusals = [sky.decide("brew", "pot").refusal for _ in range(4)]

    assert [no and str(no) for no in refusals] == [
        "418 Short: Said.",
        "418 Stout: Said.",
        "418 Short: Said.",
        "418 Short: Said.",
    ]


def test_a_dialect_says_what_there_is() -> None:
    """Rules of another service's operations and codes are wrong."""
    rule = Fault.from_json({"kind": "before", "op": "brew", "code": "Stout"}, "rule", TEAPOT)

    assert Climate.from_json({"faults": [rule.to_json()]}, TEAPOT) == Climate((rule,))
    with pytest.raises(OptionError, match=r"faults\[0\]\.op is 'rename': expected one of \*, brew"):
        Climate.from_json({"faults": [{"kind": "cut", "op": "rename"}]}, TEAPOT)
    with pytest.raises(OptionError, match=r"rule\.code is 'ServerBusy'"):
        Fault.from_json({"kind": "before", "code": "ServerBusy"}, "rule", TEAPOT)


@pytest.mark.parametrize(
    "fault, message",
    [
        (Fault("cut", op="renam"), r"fault\.op is 'renam': expected one of \*, create, .*rename"),
        (Fault("before", code="Bussy"), r"fault\.code is 'Bussy': expected one of .*ServerBusy"),
    ],
)
def test_a_rule_that_could_never_strike_is_refused(fault: Fault, message: str) -> None:
    """A misspelt operation or code is refused wherever a rule is added, and no rule changes."""
    sky = weather()
    before = sky.climate

    with pytest.raises(OptionError, match=message):
        sky.add(fault)
    with pytest.raises(OptionError, match=message):
        sky.climate = Climate((fault,))
    with pytest.raises(OptionError, match=message):
        FaultInjector(random.Random(1), Clock(), Climate((fault,)))

    assert sky.climate is before
    assert sky.decide("rename", "/a") == CLEAR


def test_the_default_dialect() -> None:
    """Is that of ADLS Gen2."""
    assert weather().dialect is ADLS
    assert (repr(ADLS), ADLS.ops) == ("Dialect('adls')", OPS)


@pytest.mark.parametrize("name", ["latency", "limit", "faults"])
def test_attribute_of_the_climate_is_refused(name: str) -> None:
    """What belongs to the climate cannot be set beside it, where it would have no effect."""
    with pytest.raises(AttributeError, match=name):
        setattr(weather(), name, 0.1)
