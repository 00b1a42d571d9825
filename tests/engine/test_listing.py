"""Everything below a directory is listed, in pages of any kind."""

from __future__ import annotations

import pytest

from asynccommit import NotFoundError, OptionError
from asynccommit.engine import list_tree
from tests.engine.conftest import KINDS, RENAMING, Place, on


@on(KINDS)
async def test_everything_below_is_listed(place: Place) -> None:
    """Each file is yielded once with its size, and nothing of a neighbour."""
    files = {f"t/p={i % 3}/f{i}": "x" * i for i in range(30)}
    await place.write(files | {"t2/f": "k"})

    found = [info async for info in list_tree(place.store, place("t")) if not info.is_dir]

    assert {info.path: info.size for info in found} == {
        place(name): len(text) for name, text in files.items()
    }
    assert len(found) == 30


@on(RENAMING[:2])
async def test_a_missing_directory_is_an_error(place: Place) -> None:
    """Where directories exist by themselves, a missing one is a ``NotFoundError``."""
    with pytest.raises(NotFoundError):
        _ = [info async for info in list_tree(place.store, place("none"))]
    with pytest.raises(OptionError):
        _ = [info async for info in list_tree(place.store, "relative")]
