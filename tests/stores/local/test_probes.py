"""Probing: what a rename would say, and nothing is changed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from asynccommit.errors import NotFoundError, RejectedError
from asynccommit.stores.local import probes
from asynccommit.stores.local.store import LocalStore
from tests.support.jobs import write
from tests.support.namespaces import in_namespace, overlay, tmpfs


def tree(root: Path) -> list[str]:
    """Return everything below a directory."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


async def test_what_can_be_moved_stays(tmp_path: Path) -> None:
    """A probe of a file, a directory or a link is silent and leaves all as it was."""
    write(tmp_path, {"d/f": "1", "place/x": "2"})
    (tmp_path / "link").symlink_to("d")
    before, store = tree(tmp_path), LocalStore()
    for name in ("d", "d/f", "link"):
        await store.probe(f"{tmp_path}/{name}", f"{tmp_path}/place")

    assert tree(tmp_path) == before
    with pytest.raises(NotFoundError):
        await store.probe(f"{tmp_path}/none", f"{tmp_path}/place")
    await store.aclose()


async def _layers(root: str) -> dict[str, Any]:
    here, store = Path(root), LocalStore()
    write(here / "lower", {"old/f": "1", "merged/f": "1"})
    overlay(here / "lower", here / "all", here / "layers")
    write(here / "all", {"new/f": "2", "merged/g": "2", "place/": ""})
    tmpfs(here / "elsewhere")
    before, said = tree(here / "all"), {}
    for name in ("old", "merged", "new", "old/f"):
        for place in ("all/place", "elsewhere"):
            try:
                await store.probe(f"{here}/all/{name}", f"{here}/{place}")
                said[f"{name} to {place}"] = ""
            except RejectedError as error:
                said[f"{name} to {place}"] = error.detail
    assert tree(here / "all") == before
    await store.aclose()
    return said


def test_the_layers_of_an_overlay(tmp_path: Path) -> None:
    """Only directories of the upper layer alone are renamed, and files of either."""
    said = in_namespace(_layers, str(tmp_path))
    for name in ("old", "merged"):
        assert said[f"{name} to all/place"].startswith("in a lower layer of an overlay")
    for name in ("new", "old/f"):
        assert said[f"{name} to all/place"] == ""
    assert all("a different filesystem or mount" in said[key] for key in said if "elsewhere" in key)


def test_a_trap_that_somebody_empties(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the probe of a layer moves the directory after all, that is put back at once."""
    write(tmp_path, {"d/f": "1", "place/": ""})
    rename = os.rename

    def emptied(source: str, dest: str) -> None:
        if dest.endswith("/full"):
            os.rmdir(f"{dest}/x")
        rename(source, dest)

    monkeypatch.setattr(os, "rename", emptied)
    with pytest.raises(RejectedError, match="was deleted by another"):
        probes._refuse_lower(f"{tmp_path}/d", f"{tmp_path}/place")
    assert tree(tmp_path) == ["d", "d/f", "place"]
