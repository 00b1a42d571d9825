"""What goes wrong, and when: rules read from JSON, drawn from one ``random.Random``.

``FaultInjector`` decides about each request before it is looked at. Its ``FaultDecision`` says how
long to wait, whether and when the request takes effect, and what is answered; who asked carries it
out, over HTTP (the emulator) or in process (``SimStore``). The same seed and the same requests give
the same decisions.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NamedTuple

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

BEFORE = "before"
AFTER = "after"
CUT_BEFORE = "cut_before"
CUT = "cut"
LATE = "late"
SLOW = "slow"
KINDS = (BEFORE, AFTER, CUT_BEFORE, CUT, LATE, SLOW)

OPS = (
    *("create", "mkdir", "append", "flush", "rename", "delete", "head", "read", "list"),
    *("lease", "properties", "access", "filesystem", "list_filesystems"),
)
"""The names of operations in rules, besides ``*``."""

_SECOND = Latency(first=1.0)


@dataclass(frozen=True, slots=True, repr=False)
class Dialect:
    """How one service speaks: what is asked of it, and how it says no.

    Attributes:
        name: of the service.
        ops: the names of operations in rules, besides ``*``.
        codes: the codes that rules may answer -> status and message.
        busy: the code that means too many requests; what ``before`` answers unless told.
        timed_out: the code that says nothing of the outcome; what others answer unless told.
        refuse: makes an answer of a code, a message or the service's own, and headers.
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
"""The default. See ``asynccommit.testing.models.gcs.dialect`` for another."""


class Effect(Enum):
    """When the request takes effect."""

    NOW = "now"
    NEVER = "never"
    LATE = "late"


class Reply(Enum):
    """What is answered."""

    TRUE = "true"  # what the store says
    REFUSAL = "refusal"
    CUT = "cut"  # the connection is closed
    NEVER = "never"  # nothing, ever; the connection stays


REPLIES = (Reply.CUT.value, Reply.NEVER.value, Reply.REFUSAL.value)
"""What a late request may be answered."""


class FaultDecision(NamedTuple):
    """What becomes of one request.

    Attributes:
        before: seconds to wait first.
        effect: whether it then takes effect.
        late: seconds from there until a ``LATE`` effect; the answer does not wait for it.
        after: seconds from the effect to the answer.
        reply: what is answered.
        refusal: the answer, for ``Reply.REFUSAL``.
        kind: of the rule that struck, ``"limit"``, or ``""``.
    """

    before: float = 0.0
    effect: Effect = Effect.NOW
    late: float = 0.0
    after: float = 0.0
    reply: Reply = Reply.TRUE
    refusal: Refusal | None = None
    kind: str = ""


CLEAR = FaultDecision()
"""Nothing happens to the request."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One rule.

    Attributes:
        kind: ``before``: answers ``code`` and does nothing; ``after``: does it and answers
            ``code``; ``cut_before``, ``cut``: the connection is cut before, after the effect;
            ``late``: the effect comes ``delay`` after the reply; ``slow``: ``delay`` more.
        op: one of the dialect's, or ``*``.
        path: a regular expression, searched for in the path.
        probability: of each matching request that is due.
        skip: matching requests that pass first.
        every: of those that follow, each so many-th is due, the first of them at once.
        times: how often it strikes at most; ``None`` is no bound.
        code: the error code answered; if ``""``, the dialect's for busy before the effect and
            for timed out else.
        message: its text; the service's own if ``None``.
        retry_after: seconds, told with the error.
        delay: how late or slow; one second if ``None``.
        reply: of ``late``: ``cut``, ``never`` or ``refusal``.
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
        for name, value, choices in (("kind", self.kind, KINDS), ("reply", self.reply, REPLIES)):
            if value not in choices:
                raise OptionError(f"fault.{name} is {value!r}: say one of {', '.join(choices)}")

    @classmethod
    def from_json(cls, value: object, name: str = "fault", dialect: Dialect = ADLS) -> Fault:
        """Read a rule for a service. Raises ``OptionError`` naming the field that is wrong."""
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
        """Return what ``from_json`` reads."""
        found: dict[str, Any] = {}
        for key in self.__slots__:
            value = getattr(self, key)
            if value is not None:
                found[key] = value.to_json() if isinstance(value, Latency) else value
        return found


def _delay(fields: SettingsFields) -> Latency | None:
    value = fields.any("delay", None)
    return None if value is None else Latency.from_json(value, f"{fields.name}.delay")


def _code(fields: SettingsFields, dialect: Dialect) -> str:
    code = fields.text("code", "")
    if code and code not in dialect.codes:
        raise OptionError(f"{fields.name}.code is {code!r}: it is no code of the service")
    return code


@dataclass(frozen=True, slots=True)
class Climate:
    """All that ``FaultInjector`` is made of, as a configuration file holds it.

    Attributes:
        faults: the rules, of which the first that strikes decides; slow ones add up.
        latency: of every request, before it takes effect.
        limit: on requests; more are refused with the dialect's code for busy.
    """

    faults: tuple[Fault, ...] = ()
    latency: Latency = NO_LATENCY
    limit: RequestLimit | None = None

    @classmethod
    def from_json(cls, value: object, dialect: Dialect = ADLS) -> Climate:
        """Read an object, or the text of one, for a service.

        Raises ``OptionError`` naming the wrong field.
        """
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
        """Return what ``from_json`` reads."""
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
        raise OptionError(f"climate is no JSON: {error}") from None
    return parsed


class FaultInjector:
    """Decides what becomes of each request.

    Args:
        rng: where all chances and times are drawn from.
        clock: the server's, in seconds, for the limit on requests.
        climate: what to decide by; may be replaced at any time.
        dialect: of the service that answers.
    """

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
        """What is decided by; setting it starts the counts of all rules anew."""
        return self._climate

    @climate.setter
    def climate(self, climate: Climate) -> None:
        self._climate = climate
        self._rules = [_Rule(fault) for fault in climate.faults]
        self._bucket = None if climate.limit is None else RateLimitState(climate.limit, self._clock)
        self._calm = climate.latency.is_none
        always = climate.latency.always
        self._usual = None if always is None else FaultDecision(always)

    def add(self, *faults: Fault) -> None:
        """Add rules behind the others, whose counts go on."""
        self._climate = replace(self._climate, faults=(*self._climate.faults, *faults))
        self._rules += [_Rule(fault) for fault in faults]

    def clear(self) -> None:
        """Remove rules, latency and limit."""
        self.climate = Climate()

    def decide(self, op: str, path: str) -> FaultDecision:
        """Return what becomes of one request; ask once for each."""
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
        dialect = self.dialect
        code = fault.code or (dialect.busy if fault.kind == BEFORE else dialect.timed_out)
        no = dialect.refuse(code, fault.message, retry_after(fault.retry_after))
        if fault.kind == LATE:
            late = (fault.delay or _SECOND).draw(self._rng)
            return FaultDecision(before, Effect.LATE, late, after, Reply(fault.reply), no, LATE)
        effect = Effect.NOW if fault.kind == AFTER else Effect.NEVER
        return FaultDecision(before, effect, 0.0, after, Reply.REFUSAL, no, fault.kind)

    def report(self) -> dict[str, Any]:
        """Return what was asked and what struck, fit for JSON."""
        rules = [{**rule.fault.to_json(), "struck": rule.struck} for rule in self._rules]
        return {
            "requests": dict(self.requests),
            "struck": dict(self.struck),
            "climate": {**self._climate.to_json(), "faults": rules},
        }


class _Rule:
    """A fault with its counts."""

    __slots__ = ("_search", "fault", "seen", "struck")

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.seen = 0
        self.struck = 0
        self._search = re.compile(fault.path).search if fault.path else None

    def strikes(self, op: str, path: str, rng: random.Random) -> bool:
        """Whether this request is hit."""
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
