"""What flat object stores share: names, listings, and directories that names imply."""

from __future__ import annotations

import pytest

from asynccommit.stores.base import Info, Kind
from asynccommit.stores.http.flat import (
    LONGEST,
    below_only,
    check_length,
    directories,
    placeholder,
    prefix_of,
)


def test_a_directory_is_a_prefix_that_ends_in_a_slash() -> None:
    """The root is the empty prefix, below which all names are."""
    assert (prefix_of("/"), prefix_of("/a/b")) == ("", "a/b/")


@pytest.mark.parametrize("name, path", [("/a/", "/a"), ("/a/b/", "/a/b"), ("/a//", None)])
def test_a_placeholder_stands_for_a_directory_that_a_path_can_name(
    name: str, path: str | None
) -> None:
    """A name with an empty segment, or dots for one, stands for none."""
    found = placeholder(name)

    assert (found and found.path) == path
    assert placeholder("/a/../") is None


def test_a_listing_leaves_the_directory_itself_out() -> None:
    """That its own placeholder was among the entries is told apart from them."""
    entries = [Info("/t/", Kind.FILE), Info("/t/a", Kind.FILE)]

    found = below_only(entries, "/t", lambda info: info)

    assert ([info.path for info in found.entries], found.itself) == (["/t/a"], True)


@pytest.mark.parametrize("path", ["/ta", "/u/a", "/t"])
def test_a_listing_of_another_directory_is_refused(path: str) -> None:
    """An entry that is not below the prefix shows that the response is of another request."""
    with pytest.raises(ValueError, match="not a listing of /t"):
        below_only([Info(path, Kind.FILE)], "/t", lambda info: info)


def test_common_prefixes_are_directories() -> None:
    """One that no path can name is of another kind; one from elsewhere is refused."""
    found = directories(["/t/", "/t/a/", "/t//"], "/t")

    assert [(info.path, info.kind) for info in found] == [
        ("/t/a", Kind.DIRECTORY),
        ("/t//", Kind.OTHER),
    ]
    for name in ("/u/a/", "/t/a"):
        with pytest.raises(ValueError, match="not a listing below /t/"):
            directories([name], "/t")


def test_a_name_is_measured_in_bytes() -> None:
    """A name of as many bytes as the service takes passes, and one more does not."""
    check_length("/" + "a" * LONGEST, "a" * LONGEST)
    check_length("/é", "%C3%A9" * LONGEST)
    with pytest.raises(ValueError, match="more than 1024 bytes"):
        check_length("/" + "é" * 513, "%C3%A9" * 513)
