"""Pages of listings: everything once, whatever the page size, also while others write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.testing.models.adls.account import AdlsLimits
from tests.testing.models.adls.model import FS, Bench, refused

NAME = st.sampled_from(["a", "b", "a.b", "a-", "é", "Z", "a b"])
PATHS = st.lists(st.lists(NAME, min_size=1, max_size=4).map("/".join), max_size=25)


def filled(paths: list[str]) -> Bench:
    """Return an account with these directories."""
    account = Bench()
    for path in paths:
        account.dir(path)
    return account


def order(path: str) -> list[str]:
    """Sort by directories, not by text: what a directory holds follows it."""
    return path.split("/")


@given(PATHS, st.integers(1, 6))
def test_recursive_pages_show_everything_once(paths: list[str], page: int) -> None:
    """All pages together are all paths in order, a directory before what it holds."""
    account = filled(paths)
    everything = {"/".join(path.split("/")[: n + 1]) for path in paths for n in range(4)}
    account.limits = AdlsLimits(page=page)

    assert account.names() == sorted(everything, key=order)
    for top in {path.split("/")[0] for path in paths}:
        below = sorted((p for p in everything if p.startswith(f"{top}/")), key=order)
        assert account.names(top) == below


@given(PATHS, st.integers(1, 6))
def test_flat_pages_show_the_children_once(paths: list[str], page: int) -> None:
    """All pages together are the children in order."""
    account = filled(paths)
    account.limits = AdlsLimits(page=page)

    assert account.names(recursive=False) == sorted({path.split("/")[0] for path in paths})


@given(PATHS, PATHS, PATHS, st.integers(1, 5), st.booleans())
def test_listing_under_change(
    paths: list[str], added: list[str], gone: list[str], page: int, recursive: bool
) -> None:
    """What is there from the first page to the last is shown once, and nothing is shown twice."""
    account = filled(paths)
    stayed = set(account.names(recursive=recursive))
    found: list[str] = []
    token = None
    while True:
        shown = account.list(FS, recursive=recursive, limit=page, token=token)
        found += [path for path, _ in shown.entries]
        token = shown.token
        if token is None:
            break
        if gone and gone[-1] in account.names():
            account.delete(FS, gone.pop(), recursive=True)
            stayed &= set(account.names(recursive=recursive))
        if added:
            account.dir(added.pop())

    assert len(found) == len(set(found))
    assert stayed <= set(found)


def test_page_has_a_cap() -> None:
    """5,000 entries, whatever is asked for; the answer to more is another page."""
    account = Bench()
    for number in range(5001):
        account.create(FS, f"d/{number:05d}")

    page = account.list(FS, "d", limit=1_000_000)

    assert len(page.entries) == 5000
    rest = account.list(FS, "d", token=page.token)
    assert ([path for path, _ in rest.entries], rest.token) == (["d/05000"], None)


def test_last_page_is_full() -> None:
    """A page that holds exactly the rest has no token."""
    account = filled(["a", "b"])

    assert account.list(FS, limit=2).token is None


def test_first_page_may_be_empty() -> None:
    """Documented: an empty page with a token is not the end."""
    account = filled(["a/b", "c"])
    account.limits = AdlsLimits(empty_pages=True)

    page = account.list(FS)

    assert page.entries == []
    assert page.token is not None
    assert account.names() == ["a", "a/b", "c"]


@pytest.mark.parametrize("token", ["no base64!", "bm8=", "////", "="])
def test_bad_token(token: str) -> None:
    """What the service did not make is refused."""
    with refused(400, "InvalidQueryParameterValue"):
        filled(["a", "b"]).list(FS, token=token)


def test_token_of_another_listing() -> None:
    """A token is good for the directory and the depth it was made for."""
    account = filled(["a/b", "a/c", "d/e", "d/f"])
    token = account.list(FS, "a", limit=1).token
    for directory, recursive in (("d", False), ("a", True), ("", False)):
        with refused(400, "InvalidQueryParameterValue"):
            account.list(FS, directory, recursive=recursive, token=token)
    with refused(400, "InvalidQueryParameterValue"):
        account.delete(FS, "a", recursive=True, token=token)
    with refused(400, "InvalidQueryParameterValue"):
        account.list_filesystems(token=token)


def test_token_of_another_delete() -> None:
    """A delete goes on with what it began."""
    account = filled(["a/b", "a/c", "d/e", "d/f"])
    account.limits = AdlsLimits(delete=1)
    token = account.delete(FS, "a", recursive=True)

    with refused(400, "InvalidQueryParameterValue"):
        account.delete(FS, "d", recursive=True, token=token)


def test_place_that_is_gone() -> None:
    """The listing goes on where the directory was that it stopped in."""
    account = filled(["a/b/c/d", "a/x", "e"])
    token = account.list(FS, recursive=True, limit=4).token
    account.delete(FS, "a/b", recursive=True)

    page = account.list(FS, recursive=True, token=token)

    assert [path for path, _ in page.entries] == ["a/x", "e"]


def test_page_of_nothing() -> None:
    """A page has at least one entry."""
    with refused(400, "OutOfRangeQueryParameterValue"):
        Bench().list(FS, limit=0)


def test_listing_of_a_file() -> None:
    """The listing of a file holds that file."""
    account = Bench()
    account.file("f")

    assert [name for name, _ in account.list(FS, "f").entries] == ["f"]
    with refused(404, "PathNotFound"):
        account.list(FS, "f/x")


@given(PATHS, st.integers(1, 7))
def test_partial_delete_ends(paths: list[str], limit: int) -> None:
    """Each request removes its share, and in the end nothing is left but what is beside."""
    account = filled([f"d/{path}" for path in paths])
    account.dir("d")
    account.dir("e/f")
    account.limits = AdlsLimits(delete=limit)
    token, requests = account.delete(FS, "d", recursive=True), 1
    while token is not None:
        assert "d" in account.names(recursive=False)
        token = account.delete(FS, "d", recursive=True, token=token)
        requests += 1

    assert account.names() == ["e", "e/f"]
    everything = {"/".join(path.split("/")[: n + 1]) for path in paths for n in range(4)}
    assert requests == max(1, -(-len(everything) // limit))


@pytest.mark.parametrize(
    "recursive,start,names",
    [
        (True, "b", ["b", "b/c", "b/e", "b-", "d"]),
        (True, "b/d", ["b/e", "b-", "d"]),
        (True, "a/x", ["b", "b/c", "b/e", "b-", "d"]),
        (True, "e", []),
        (False, "b/d", ["b", "b-", "d"]),
    ],
)
def test_listing_from_a_name(recursive: bool, start: str, names: list[str]) -> None:
    """It begins at that name, in the order of the listing, and goes on over pages."""
    account = Bench()
    for name in ("x/a", "x/b/c", "x/b/e", "x/b-", "x/d"):
        account.file(name)

    found, token = [], None
    while True:
        page = account.list(FS, "x", recursive=recursive, limit=2, token=token, start=start)
        found += [name for name, _ in page.entries]
        token = page.token
        if token is None:
            break

    assert found == [f"x/{name}" for name in names]
