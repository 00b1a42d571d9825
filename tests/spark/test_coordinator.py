"""What is left to Spark: its coordinator says which attempt of a task may commit.

Nothing of ours replaces it. These are the rules on which the commit of a task relies, asked of
Spark's own class.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]

STAGE, PARTITION = 7, 0


class Coordinator:
    """One of Spark's own, with the one stage of a test.

    Args:
        spark: a session.
    """

    def __init__(self, spark: Any) -> None:
        self._jvm = spark._jvm
        make = self._jvm.org.apache.spark.scheduler.OutputCommitCoordinator
        self._own = make(spark._jsc.sc().conf(), True)

    def begin(self) -> None:
        """Begin the stage."""
        self._own.stageStart(STAGE, PARTITION)

    def end(self) -> None:
        """End it."""
        self._own.stageEnd(STAGE)

    def may_commit(self, attempt: int, *, stage_attempt: int = 0) -> bool:
        """Ask as the message of a task does, before it commits."""
        asked: bool = self._own.handleAskPermissionToCommit(
            STAGE, stage_attempt, PARTITION, attempt
        )
        return asked

    def fail(self, attempt: int, *, stage_attempt: int = 0) -> None:
        """Let an attempt fail."""
        lost = getattr(self._jvm.org.apache.spark, "TaskResultLost$")
        reason = getattr(lost, "MODULE$")
        self._own.taskCompleted(STAGE, stage_attempt, PARTITION, attempt, reason)


@pytest.fixture
def coordinator(spark: Any) -> Iterator[Coordinator]:
    """A stage with one task."""
    asked = Coordinator(spark)
    asked.begin()
    yield asked
    asked.end()


def test_who_is_denied_waits_for_the_holder(coordinator: Coordinator) -> None:
    """Scenario 52: as long as the attempt that may commit neither fails nor ends, no other may."""
    assert coordinator.may_commit(0)
    assert not any(coordinator.may_commit(attempt) for attempt in (1, 2, 3, 1))


def test_who_frees_the_lock(coordinator: Coordinator) -> None:
    """Scenario 53: an attempt that fails lets another commit if it was the one that might."""
    assert coordinator.may_commit(0)
    coordinator.fail(1)
    assert not coordinator.may_commit(2)

    coordinator.fail(0)
    assert coordinator.may_commit(2)


def test_an_attempt_that_failed(coordinator: Coordinator) -> None:
    """Scenario 54: it may not commit any more, whether or not it had asked before."""
    coordinator.fail(0)

    assert not coordinator.may_commit(0)
    assert coordinator.may_commit(1)


def test_attempts_of_a_stage_that_runs_again(coordinator: Coordinator) -> None:
    """Scenario 55: attempt 0 of another attempt of the stage is another one."""
    coordinator.fail(0)

    assert coordinator.may_commit(0, stage_attempt=1)
    assert not coordinator.may_commit(1, stage_attempt=0)


def test_a_stage_that_has_ended(coordinator: Coordinator) -> None:
    """Scenario 56: nobody may commit in it any more, and begun again it knows nobody."""
    assert coordinator.may_commit(0)
    coordinator.end()
    assert not coordinator.may_commit(0)

    coordinator.begin()
    assert coordinator.may_commit(1)
