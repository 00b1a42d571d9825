"""Decide the faults of requests by rules and a random source.

``FaultInjector`` decides about each request before it is executed. Its ``FaultDecision`` tells how
long to wait, whether and when the request takes effect, and the response; the caller carries it
out, over HTTP (the emulator) or in process (``SimStore``). The same seed and the same requests give
the same decisions.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NamedTuple, TypeVar

from asynccommit.errors import OptionError
from asynccommit.testing.models.adls.refusals import CODES, Refusal, refusal
from asynccommit.testing.models.latency import (
    NO_LATENCY,
    Latency,
    RateLimitState,
    RequestLimit,
    retry_after,
)
from asynccommit.testing.models.settings import SettingsFields

A = TypeVar("A")

BEFORE = "before"
AFTER = "after"
CUT_BEFORE = "cut_before"
CUT = "cut"
LATE = "late"
SLOW = "slow"
TWICE = "twice"
AGAIN = "again"
KINDS = (BEFORE, AFTER, CUT_BEFORE, CUT, LATE, SLOW, TWICE, AGAIN)

OPS = (
    *("create", "mkdir", "append", "flush", "rename", "delete", "head", "read", "list"),
    *("lease", "properties", "access", "filesystem", "list_filesystems", "batch"),
)
"""The names of operations in rules, besides ``*``."""

_SECOND = Latency(first=1.0)


@dataclass(frozen=True, slots=True, repr=False)
class Dialect:
    """The operations and error codes of one service.

    Attributes:
        name: name of the service.
        ops: names of operations in rules, besides ``*``.
        codes: codes that rules may use -> status and message.
        busy: code for too many requests; the default of ``before``.
        timed_out: code that leaves the outcome open; the default of the other kinds.
        refuse: builds an error from a code, a message (or the service's own) and headers.
    """

    name: str
    ops: tuple[str, ...]
    codes: Mapping[str, tuple[int, str]]
    busy: str
    timed_out: str
    refuse: Callable[[str, str | None, Mapping[str, str] | None], Refusal]

    def __repr__(self) -> str:
        return f"Dialect({self.name!r})"


ADLS = Dialect("adls", OPS, CODES, "ServerBusy", "OperationTimedOut", refusal)
"""The default dialect. See ``asynccommit.testing.models.gcs.refusals`` for another."""


class Effect(Enum):
    """The time at which the request takes effect."""

    NOW = "now"
    NEVER = "never"
    LATE = "late"
    TWICE = "twice"  # now, and at once again: the second response counts
    AGAIN = "again"  # now, and later again: the first response counts


class Reply(Enum):
    """The kind of response."""

    TRUE = "true"  # the true response
    REFUSAL = "refusal"
    CUT = "cut"  # the connection is closed
    NEVER = "never"  # none, ever; the connection stays open


REPLIES = (Reply.CUT.value, Reply.NEVER.value, Reply.REFUSAL.value)
"""The possible replies to a late request."""


class FaultDecision(NamedTuple):
    """The decision about one request.

    Attributes:
        before: seconds to wait first.
        effect: whether the request then takes effect.
        late: further seconds until a ``LATE`` effect, or the second of ``AGAIN``; the response
            does not wait for it.
        after: seconds from the effect to the response.
        reply: kind of response.
        refusal: the response for ``Reply.REFUSAL``.
        kind: kind of the rule that struck, ``"limit"``, or ``""``.
    """

    before: float = 0.0
    effect: Effect = Effect.NOW
    late: float = 0.0
    after: float = 0.0
    reply: Reply = Reply.TRUE
    refusal: Refusal | None = None
    kind: str = ""


CLEAR = FaultDecision()
"""No fault: the request is executed normally."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault rule.

    Attributes:
        kind: ``before``: responds with ``code`` and has no effect; ``after``: takes effect and
            responds with ``code``; ``cut_before``, ``cut``: the connection is cut before or after
            the effect; ``late``: the effect comes ``delay`` after the reply; ``slow``: ``delay``
            more latency; ``twice``: takes effect twice, with the second response; ``again``: takes
            effect, responds, and takes effect once more after ``delay``.
        op: an operation of the dialect, or ``*``.
        path: regular expression, searched for in the path.
        probability: probability for each matching request that is due.
        skip: number of matching requests to skip first.
        every: of the following matching requests every n-th is due, starting with the first.
        times: maximum number of strikes; ``None`` for no limit.
        code: error code of the response; if ``""``, the dialect's busy code before the effect and
            its timeout code otherwise.
        message: error message; the service's own if ``None``.
        retry_after: seconds in the header of the error.
        delay: delay in seconds; one second if ``None``.
        reply: reply of ``late``: ``cut``, ``never`` or ``refusal``.
    """

    kind: str
    op: str = "*"
    path: str = ""
    probability: float = 1.0
    skip: int = 0
    every: int = 1
    times: int | None = None
    code: str = ""
    message: str | None = None
    retry_after: float | None = None
    delay: Latency | None = None
    reply: str = Reply.CUT.value

    def __post_init__(self) -> None:
        _refuse_unknown("kind", self.kind, KINDS)
        _refuse_unknown("reply", self.reply, REPLIES)

    @classmethod
    def from_json(cls, value: object, name: str = "fault", dialect: Dialect = ADLS) -> Fault:
        """Read a rule for a service. Raises ``OptionError`` that names the invalid field."""
        fields = SettingsFields(value, name)
        fault = cls(
            kind=fields.choice("kind", KINDS),
            op=fields.choice("op", ("*", *dialect.ops), "*"),
            path=fields.pattern("path"),
            probability=fields.share("probability", 1.0),
            skip=fields.count("skip", 0),
            every=fields.count("every", 1, 1),
            times=fields.count_or_none("times"),
            code=_code(fields, dialect),
            message=fields.text_or_none("message"),
            retry_after=fields.number_or_none("retry_after"),
            delay=_delay(fields),
            reply=fields.choice("reply", REPLIES, Reply.CUT.value),
        )
        fields.done()
        return fault

    def to_json(self) -> dict[str, Any]:
        """Return the JSON that ``from_json`` reads."""
        found: dict[str, Any] = {}
        for key in self.__slots__:
            value = getattr(self, key)
            if value is not None:
                found[key] = value.to_json() if isinstance(value, Latency) else value
        return found


def _refuse_unknown(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        expected = ", ".join(filter(None, choices))
        raise OptionError(f"fault.{name} is {value!r}: expected one of {expected}")


def _delay(fields: SettingsFields) -> Latency | None:
    value = fields.any("delay", None)
    return None if value is None else Latency.from_json(value, f"{fields.name}.delay")


def _code(fields: SettingsFields, dialect: Dialect) -> str:
    code = fields.text("code", "")
    if code and code not in dialect.codes:
        raise OptionError(f"{fields.name}.code is {code!r}: it is not a code of the service")
    return code


@dataclass(frozen=True, slots=True)
class Climate:
    """The configuration of a ``FaultInjector``, as read from a file.

    Attributes:
        faults: rules, of which the first that strikes decides; delays of slow ones add up.
        latency: latency of every request, before it takes effect.
        limit: request limit; requests above it are rejected with the dialect's busy code.
    """

    faults: tuple[Fault, ...] = ()
    latency: Latency = NO_LATENCY
    limit: RequestLimit | None = None

    @classmethod
    def from_json(cls, value: object, dialect: Dialect = ADLS) -> Climate:
        """Read an object, or its text, for a service; ``OptionError`` names the invalid field."""
        fields = SettingsFields(_parse(value), "climate")
        limit = fields.any("limit", None)
        climate = cls(
            tuple(
                Fault.from_json(item, f"faults[{number}]", dialect)
                for number, item in enumerate(fields.items("faults"))
            ),
            Latency.from_json(fields.any("latency", 0)),
            None if limit is None else RequestLimit.from_json(limit),
        )
        fields.done()
        return climate

    def to_json(self) -> dict[str, Any]:
        """Return the JSON that ``from_json`` reads."""
        return {
            "faults": [fault.to_json() for fault in self.faults],
            "latency": self.latency.to_json(),
            "limit": None if self.limit is None else self.limit.to_json(),
        }


def _parse(value: object) -> object:
    if not isinstance(value, str | bytes):
        return value
    try:
        parsed: object = json.loads(value)
    except ValueError as error:
        raise OptionError(f"climate is not JSON: {error}") from None
    return parsed


class FaultInjector:
    """A fault injector, which decides about each request.

    Args:
        rng: source of all random decisions and times.
        clock: the server's clock in seconds, for the request limit.
        climate: configuration; may be replaced at any time.
        dialect: dialect of the service.
    """

    # A misspelt attribute, or one of the climate, is an error and not passed over.
    __slots__ = (
        "_bucket",
        "_calm",
        "_climate",
        "_clock",
        "_rng",
        "_rules",
        "_usual",
        "dialect",
        "requests",
        "struck",
    )

    def __init__(
        self,
        rng: random.Random,
        clock: Callable[[], float],
        climate: Climate | None = None,
        dialect: Dialect = ADLS,
    ) -> None:
        self.requests: Counter[str] = Counter()
        self.struck: Counter[str] = Counter()
        self._rng = rng
        self._clock = clock
        self.dialect = dialect
        self.climate = climate or Climate()

    def __repr__(self) -> str:
        return f"Weather({self._climate!r})"

    @property
    def climate(self) -> Climate:
        """The configuration; setting it resets the counts of all rules.

        Raises ``OptionError`` for an operation or code that the service does not have.
        """
        return self._climate

    @climate.setter
    def climate(self, climate: Climate) -> None:
        self._rules = self._rules_of(climate.faults)
        self._climate = climate
        self._bucket = None if climate.limit is None else RateLimitState(climate.limit, self._clock)
        self._calm = climate.latency.is_none
        always = climate.latency.always
        self._usual = None if always is None else FaultDecision(always)

    def add(self, *faults: Fault) -> None:
        """Append rules; the counts of the present ones go on.

        Raises ``OptionError`` for an operation or code that the service does not have.
        """
        self._rules += self._rules_of(faults)
        self._climate = replace(self._climate, faults=(*self._climate.faults, *faults))

    def _rules_of(self, faults: Iterable[Fault]) -> list[_Rule]:
        for fault in faults:
            _refuse_unknown("op", fault.op, ("*", *self.dialect.ops))
            _refuse_unknown("code", fault.code, ("", *self.dialect.codes))
        return [_Rule(fault) for fault in faults]

    def clear(self) -> None:
        """Remove rules, latency and request limit."""
        self.climate = Climate()

    def decide(self, op: str, path: str) -> FaultDecision:
        """Return the decision about one request; call once for each request."""
        self.requests[op] += 1
        if self._calm and self._bucket is None and not self._rules:
            return CLEAR
        usual = self._usual
        before = self._climate.latency.draw(self._rng) if usual is None else usual.before
        if self._bucket is not None and not self._bucket.take():
            self.struck["limit"] += 1
            wait = retry_after(self._bucket.limit.retry_after)
            busy = self.dialect.refuse(self.dialect.busy, None, wait)
            return FaultDecision(
                before, Effect.NEVER, reply=Reply.REFUSAL, refusal=busy, kind="limit"
            )
        after = 0.0
        for rule in self._rules:
            if rule.strikes(op, path, self._rng):
                self.struck[f"{rule.fault.kind} {op}"] += 1
                if rule.fault.kind != SLOW:
                    return self._strike(rule.fault, before, after)
                after += (rule.fault.delay or _SECOND).draw(self._rng)
        if not after and self._usual is not None:
            return self._usual
        return FaultDecision(before, after=after, kind=SLOW if after else "")

    def _strike(self, fault: Fault, before: float, after: float) -> FaultDecision:
        """Return the decision of a rule that strikes."""
        if fault.kind in (CUT, CUT_BEFORE):
            effect = Effect.NOW if fault.kind == CUT else Effect.NEVER
            return FaultDecision(before, effect, after=after, reply=Reply.CUT, kind=fault.kind)
        if fault.kind == TWICE:
            return FaultDecision(before, Effect.TWICE, after=after, kind=TWICE)
        if fault.kind == AGAIN:
            late = (fault.delay or _SECOND).draw(self._rng)
            return FaultDecision(before, Effect.AGAIN, late, after, kind=AGAIN)
        dialect = self.dialect
        code = fault.code or (dialect.busy if fault.kind == BEFORE else dialect.timed_out)
        no = dialect.refuse(code, fault.message, retry_after(fault.retry_after))
        if fault.kind == LATE:
            late = (fault.delay or _SECOND).draw(self._rng)
            return FaultDecision(before, Effect.LATE, late, after, Reply(fault.reply), no, LATE)
        effect = Effect.NOW if fault.kind == AFTER else Effect.NEVER
        return FaultDecision(before, effect, 0.0, after, Reply.REFUSAL, no, fault.kind)

    def report(self) -> dict[str, Any]:
        """Return the counts of requests and strikes as JSON values."""
        rules = [{**rule.fault.to_json(), "struck": rule.struck} for rule in self._rules]
        return {
            "requests": dict(self.requests),
            "struck": dict(self.struck),
            "climate": {**self._climate.to_json(), "faults": rules},
        }


def take_effect(
    decision: FaultDecision,
    perform: Callable[[], A],
    later: Callable[[float, Callable[[], object]], None],
) -> A | None:
    """Execute a request when, and as often as, its decision says.

    Returns the true response; ``None`` if there is none yet, or never.
    """
    if decision.effect is Effect.LATE:
        later(decision.late, perform)
    if decision.effect in (Effect.LATE, Effect.NEVER):
        return None
    answer = perform()
    if decision.effect is Effect.TWICE:
        answer = perform()
    elif decision.effect is Effect.AGAIN:
        later(decision.late, perform)
    return answer


class _Rule:
    """A fault rule with its counts."""

    __slots__ = ("_search", "fault", "seen", "struck")

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.seen = 0
        self.struck = 0
        self._search = re.compile(fault.path).search if fault.path else None

    def strikes(self, op: str, path: str, rng: random.Random) -> bool:
        """Return whether the rule strikes this request."""
        fault = self.fault
        if fault.op not in (op, "*") or (self._search is not None and not self._search(path)):
            return False
        if fault.times is not None and self.struck >= fault.times:
            return False
        self.seen += 1
        if self.seen <= fault.skip or (self.seen - fault.skip - 1) % fault.every:
            return False
        if fault.probability < 1 and rng.random() >= fault.probability:
            return False
        self.struck += 1
        return True
