"""Files are compared with expected sizes and etags, by listing where that is cheaper."""

from __future__ import annotations

import pytest

from asynccommit import OptionError
from asynccommit.engine import BulkError, Expected, verify
from asynccommit.testing import Fault
from tests.engine.conftest import KINDS, Place, on

on_adls = pytest.mark.parametrize("place", ["adls"], indirect=True)


@on(KINDS)
async def test_differences_are_found(place: Place) -> None:
    """A missing file, another size and another etag are told, each with what was found."""
    await place.write({f"t/f{i}": "x" * i for i in range(40)} | {"u/a": "aa", "u/b": "bb"})
    etag = (await place.store.head(place("u/a"))).etag
    expected = [(place(f"t/f{i}"), i) for i in range(40)]
    expected += [(place("t/none"), 1), (place("u/none"), 1), (place("u/b"), 3)]

    good = await verify(place.store, [*expected[:40], Expected(place("u/a"), 2, etag)])
    bad = await verify(place.store, iter([*expected, (place("u/b"), 2, etag), (place("t"),)]))

    assert (good.checked, good.ok) == (41, True)
    assert (bad.checked, bad.missing, bad.ok) == (45, 2, False)
    found = {(it.path, it.found.get("size")) for it in bad.mismatches}
    named = {(place("t/none"), None), (place("u/none"), None), (place("u/b"), 2)}
    assert found - {(place("t"), None)} == named
    assert bad.to_json()["ok"] is False


@on_adls
async def test_directories_are_listed(place: Place) -> None:
    """Forty files of one directory take one listing, and two elsewhere one request each."""
    await place.write({f"t/f{i}": "x" for i in range(40)} | {"u/a": "x", "v/b": "x"})
    expected = [(place(f"t/f{i}"), 1) for i in range(40)]
    before = place.weather.requests.total()

    report = await verify(place.store, [*expected, (place("u/a"), 1), (place("v/b"), 1)])

    assert report.ok
    assert report.requests == 3
    assert place.weather.requests.total() == before + 3


@on_adls
async def test_a_file_that_is_expected_twice_is_compared_twice(place: Place) -> None:
    """Two expectations of one path are both told."""
    await place.write({f"t/f{i}": "x" for i in range(40)})
    expected = [(place(f"t/f{i}"), 1) for i in range(40)]

    report = await verify(place.store, [*expected, (place("t/f3"), 7)])

    assert (report.checked, report.changed) == (41, 1)


@on_adls
async def test_invalid_entries_are_refused(place: Place) -> None:
    """An entry that is not as documented is named."""
    for bad in (("relative", 1), ("/a", 1, "e", "more")):
        with pytest.raises(OptionError):
            await verify(place.store, [bad])


@on_adls
async def test_an_unreadable_store_is_an_error(place: Place) -> None:
    """A refusal is raised, and not taken for a missing file."""
    await place.write({"t/a": "x"})
    place.weather.add(Fault("before", "head", code="AuthorizationPermissionMismatch"))

    with pytest.raises(BulkError, match="verify: "):
        await verify(place.store, [(place("t/a"), 1)])
