"""A file that is moved by copy and delete is never lost."""

from __future__ import annotations

import pytest

from asynccommit import ExistsError, NotFoundError, PreconditionError
from asynccommit.engine.copies import copy_and_delete
from tests.engine.conftest import Place

on_s3 = pytest.mark.parametrize("place", ["s3"], indirect=True)


@on_s3
async def test_the_source_goes_last(place: Place) -> None:
    """The copy has the content, and this version of the source is deleted."""
    await place.write({"a": "text"})
    etag = (await place.store.head(place("a"))).etag

    await copy_and_delete(place.store, place("a"), place("b"), etag, replace=False)

    assert await place.files() == {"b": "text"}


@on_s3
async def test_what_is_not_expected_stays(place: Place) -> None:
    """Another version, a destination that exists and a missing source change nothing."""
    await place.write({"a": "text", "b": "old"})
    cases = [
        (place("a"), place("c"), "another", PreconditionError),
        (place("a"), place("b"), None, ExistsError),
        (place("none"), place("c"), None, NotFoundError),
    ]
    for source, dest, etag, kind in cases:
        with pytest.raises(kind):
            await copy_and_delete(place.store, source, dest, etag, replace=False)
    assert await place.files() == {"a": "text", "b": "old"}

    await copy_and_delete(place.store, place("a"), place("b"), None, replace=True)
    assert await place.files() == {"b": "text"}
