"""Preconditions on what is there and on nothing, for reads and for changes."""

from __future__ import annotations

import pytest

from asynccommit.testing.models.gcs.objects import NO_DETAILS, Content, GcsObject
from asynccommit.testing.models.gcs.preconditions import (
    IF_ABSENT,
    NO_PRECONDITIONS,
    Preconditions,
    check_metageneration,
    check_read,
    check_write,
)
from tests.testing.models.gcs.model import refused

THERE = GcsObject("data", "a", 7, Content(b""), NO_DETAILS, 0.0)
MATCH = Preconditions(generation_match=7)
META = Preconditions(metageneration_match=1)


@pytest.mark.parametrize(
    "preconditions",
    [
        NO_PRECONDITIONS,
        MATCH,
        META,
        Preconditions(generation_not_match=8),
        Preconditions(generation_not_match=0),
        Preconditions(metageneration_not_match=2),
        Preconditions(7, 8, 1, 2),
    ],
)
def test_what_holds_of_an_object(preconditions: Preconditions) -> None:
    """Nothing is refused; generation 0 as what must not match asks for any object."""
    check_write(THERE, preconditions)
    check_read(THERE, preconditions)


@pytest.mark.parametrize(
    "preconditions",
    [IF_ABSENT, Preconditions(generation_match=8), Preconditions(metageneration_match=2)],
)
def test_something_else_was_expected(preconditions: Preconditions) -> None:
    """412, of reads too: https://cloud.google.com/storage/docs/request-preconditions."""
    with refused(412, "conditionNotMet", "pre-conditions") as caught:
        check_write(THERE, preconditions)
    assert (caught.value.location_type, caught.value.location) == ("header", "If-Match")
    with refused(412, "conditionNotMet"):
        check_read(THERE, preconditions)


@pytest.mark.parametrize(
    "preconditions",
    [Preconditions(generation_not_match=7), Preconditions(metageneration_not_match=1)],
)
def test_nothing_is_new(preconditions: Preconditions) -> None:
    """A read is told 304, a change 412."""
    with refused(304, "notModified"):
        check_read(THERE, preconditions)
    with refused(412, "conditionNotMet"):
        check_write(THERE, preconditions)


def test_both_fail() -> None:
    """That something else was expected counts more."""
    with refused(412, "conditionNotMet"):
        check_read(THERE, Preconditions(generation_match=8, metageneration_not_match=1))


@pytest.mark.parametrize(
    "preconditions,met",
    [
        (NO_PRECONDITIONS, True),
        (IF_ABSENT, True),
        (MATCH, False),
        (META, False),
        (Preconditions(generation_not_match=7), False),
        (Preconditions(generation_not_match=0), False),
        (Preconditions(metageneration_not_match=1), False),
    ],
)
def test_of_nothing(preconditions: Preconditions, met: bool) -> None:
    """Only its absence can be asked: with no live object a "not match" fails (documented)."""
    if met:
        check_write(None, preconditions)
        return
    with refused(412, "conditionNotMet"):
        check_write(None, preconditions)


def test_of_folders_and_buckets() -> None:
    """Their metageneration alone counts."""
    check_metageneration(THERE, Preconditions(8, 7, 1, 2))
    with refused(412, "conditionNotMet"):
        check_metageneration(THERE, Preconditions(metageneration_match=2))
    with refused(412, "conditionNotMet"):
        check_metageneration(THERE, Preconditions(metageneration_not_match=1))
    with refused(304, "notModified"):
        check_metageneration(THERE, Preconditions(metageneration_not_match=1), reading=True)
