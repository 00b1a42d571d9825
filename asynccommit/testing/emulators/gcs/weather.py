"""Decide the faults of a request, or of the parts of a batch.

The parts of a batch wait concurrently, as at the service. A connection belongs to a whole request:
only a fault of the batch itself leaves it without a response. A part whose response is lost is
answered with 503 ``backendError`` within the batch, whether it took effect or not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from asynccommit.testing.emulators.gcs.call import GcsCall
from asynccommit.testing.emulators.gcs.wire import GcsResponse, error_answer
from asynccommit.testing.models.fault_rules import CLEAR, SLOW, FaultDecision, FaultInjector
from asynccommit.testing.models.gcs.model import GcsRefusal, refuse

Later: TypeAlias = Callable[[float, Callable[[], object]], None]
"""Schedules a call after a number of seconds."""


def decide(weather: FaultInjector, call: GcsCall, later: Later) -> FaultDecision:
    """Return the fault decision of a request; call once for each request.

    The parts of a batch store theirs. ``later`` schedules parts that take effect after the batch is
    answered.
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
    """Return the refusal of a decision; ``backendError`` for a lost response."""
    no = decision.refusal
    return error_answer(no if isinstance(no, GcsRefusal) else refuse("backendError"))
