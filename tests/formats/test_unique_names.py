"""Names of files that no other job writes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import OptionError
from asynccommit.formats.unique_names import add_uuid

paths = st.text("ab./", min_size=1, max_size=12).filter(lambda path: not path.endswith("/"))


@pytest.mark.parametrize(
    "path,unique",
    [
        ("part-0000", "part-0000-UUID"),
        ("part-0001.gz.csv", "part-0001-UUID.gz.csv"),
        ("p=1.5/part-0001.csv", "p=1.5/part-0001-UUID.csv"),
        ("p=1.5/part-0001", "p=1.5/part-0001-UUID"),
        (".hidden", "-UUID.hidden"),
        ("part-UUID.csv", "part-UUID.csv"),
        ("UUID/part.csv", "UUID/part.csv"),
    ],
)
def test_add_uuid(path: str, unique: str) -> None:
    """Scenario 36: the id goes before the first dot of the name, unless the path has it."""
    assert add_uuid(path, "UUID") == unique


@given(paths)
def test_add_uuid_once(path: str) -> None:
    """Whatever the path, the id is in its name once, and a second time changes nothing."""
    unique = add_uuid(path, "UUID")

    assert unique.replace("-UUID", "") == path
    assert unique.rpartition("/")[2].count("UUID") == 1
    assert add_uuid(unique, "UUID") == unique


@pytest.mark.parametrize("path,uuid", [("", "UUID"), ("a/", "UUID"), ("a", ""), ("UUID/", "UUID")])
def test_add_uuid_needs_a_name_and_an_id(path: str, uuid: str) -> None:
    """Scenario 36: without a name or an id there is nothing to make."""
    with pytest.raises(OptionError):
        add_uuid(path, uuid)
