"""Errors: the tree at the top of the module is the tree, and each says what its caller needs."""

from __future__ import annotations

import pickle
import re

import pytest

from asynccommit import errors
from asynccommit.errors import (
    AsyncCommitError,
    CommitError,
    CommittedError,
    LeaseLostError,
    ManifestError,
    NotFoundError,
    OutcomeUnknownError,
    OwnedError,
    PreconditionError,
    PreflightError,
    StoreError,
    ThrottledError,
    UnfinishedError,
    ValidationError,
)

CLASSES = {
    name: value
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, Exception)
}


def drawn() -> dict[str, str]:
    """Return each class of the drawn tree with the one above it."""
    found: dict[str, str] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        match = re.fullmatch(r"( *)([A-Z]\w+Error)(?:  .*)?", line)
        if match:
            depth = len(match[1]) // 2
            path[depth:] = [match[2]]
            found[match[2]] = path[depth - 1] if depth else ""
    return found


def test_the_tree_is_drawn_as_it_is() -> None:
    """Every class is in the drawing, below the class that it is derived from."""
    assert drawn() == {
        name: "" if kind is AsyncCommitError else kind.__bases__[0].__name__
        for name, kind in CLASSES.items()
    }


@pytest.mark.parametrize(
    "kind", [PreflightError, ValidationError, OwnedError, LeaseLostError, CommittedError]
)
def test_a_failed_commit(kind: type[CommitError]) -> None:
    """A failed commit names its job, its stage, and in one sentence why."""
    cause = NotFoundError("head", "/x", "gone")
    error = kind("job", "job_stage_setup", (cause,), "say this")

    assert isinstance(error, CommitError)
    assert (error.job_id, error.stage, error.failures) == ("job", "job_stage_setup", (cause,))
    assert str(error) == "job job, job_stage_setup: say this"
    assert str(kind("job", "s", (cause,))) == "job job, s: head /x: gone"
    assert str(kind("job", "s", ())) == "job job, s: failed"
    assert str(kind("job", "", (cause,))) == "job job: head /x: gone"


def test_unfinished_commits_of_others() -> None:
    """It names the other jobs apart from its text, for whoever acts on them."""
    error = UnfinishedError("job", "job_stage_setup", ["a", "b"], "two were cut short")

    assert error.jobs == ("a", "b")
    assert error.failures == ()
    assert str(error) == "job job, job_stage_setup: two were cut short"


@pytest.mark.parametrize(
    "error",
    [
        StoreError("head", "/x", "no"),
        ThrottledError("head", "/x", "no", 3.0),
        OutcomeUnknownError("put", "/x", "no", busy=True),
        ManifestError("/x", "no"),
        CommitError("job", "s", (NotFoundError("head", "/x"),), "why"),
        OwnedError("job", "s", (), "why"),
    ],
)
def test_errors_cross_processes(error: AsyncCommitError) -> None:
    """An error of a worker reaches the driver with its words."""
    again = pickle.loads(pickle.dumps(error))

    assert type(again) is type(error)
    assert str(again) == str(error)


def test_unfinished_commits_cross_processes() -> None:
    """So does the one that names other jobs."""
    error = UnfinishedError("job", "s", ["a"], "why")
    again = pickle.loads(pickle.dumps(error))

    assert (str(again), again.jobs) == (str(error), ("a",))


def test_a_store_error_without_words() -> None:
    """Where the store says nothing the kind of error is told."""
    assert str(PreconditionError("rename", "/x")) == "rename /x: PreconditionError"
