"""What becomes of a request under weather: a batch is struck as a whole and part by part.

The parts of a batch wait side by side, as at the service. Connections are those of whole requests:
only what strikes the batch itself leaves it without an answer. A part whose own answer is lost is
answered 503 ``backendError`` within the batch, whether it took effect or not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from asynccommit.testing.emulators.gcs.call import GcsCall
from asynccommit.testing.emulators.gcs.wire import GcsResponse, error_answer
from asynccommit.testing.models.fault_rules import CLEAR, SLOW, FaultDecision, FaultInjector
from asynccommit.testing.models.gcs.model import GcsRefusal, refuse

Later: TypeAlias = Callable[[float, Callable[[], object]], None]
"""Lets something happen after so many seconds."""


def decide(weather: FaultInjector, call: GcsCall, later: Later) -> FaultDecision:
    """Return what becomes of a request; ask once for each. The parts of a batch remember theirs.

    ``later`` is for parts that take effect when the batch is answered already.
    """
    op = call.route.op
    if op != "batch":
        return weather.decide(op, call.place)
    whole = weather.decide(op, call.place)
    each = []
    for part in call.parts:
        if part.call is not None:
            part.decision = weather.decide(part.call.route.op, part.call.place)
            part.later = later
            each.append(part.decision)
    return whole if each.count(CLEAR) == len(each) else _joined(whole, each)


def _joined(whole: FaultDecision, each: Sequence[FaultDecision]) -> FaultDecision:
    before = max(whole.before, *[one.before for one in each])
    after = max(whole.after, *[one.after for one in each])
    kind = whole.kind or (SLOW if after else "")
    return whole._replace(before=before, after=after, kind=kind)


def refused(decision: FaultDecision) -> GcsResponse:
    """Return the refusal that a decision says; of an answer that is lost, ``backendError``."""
    no = decision.refusal
    return error_answer(no if isinstance(no, GcsRefusal) else refuse("backendError"))
