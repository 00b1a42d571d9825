"""What Linux tells of mounts and attributes, and what is left of it elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from asynccommit.stores.local import statx
from asynccommit.stores.local.mounts import (
    MOUNT_POINT,
    PathFacts,
    by_descriptor,
    filesystem,
    place_of,
)
from tests.support.namespaces import bind, in_namespace, tmpfs


def _places(root: str) -> dict[str, bool]:
    here = Path(root)
    for name in ("plain", "bound", "memory"):
        (here / name).mkdir()
    for name in ("file", "other"):
        (here / name).write_text(name)
    (here / "link").symlink_to(here / "memory")
    bind(here / "plain", here / "bound")
    bind(here / "other", here / "file")
    tmpfs(here / "memory")
    same = os.stat(here / "plain").st_dev == os.stat(here / "bound").st_dev
    paths = [str(here / name) for name in ("", "plain", "bound", "memory", "file", "other", "link")]
    told = {path: place_of(path) for path in paths}
    points = [path.rpartition("/")[2] for path in paths if told[path].fixed == MOUNT_POINT]
    return {
        "one device": same,
        "mounts differ": len({told[path].mount for path in paths}) == 4,
        "points": points == ["bound", "memory", "file"],
        "both ways agree": all(by_descriptor(path) == told[path] for path in paths),
        "behind the link": place_of(paths[-1], follow=True).mount == told[paths[3]].mount,
        "types": filesystem(told[paths[3]].mount, 1) == "tmpfs",
    }


def test_mounts_are_told_apart(tmp_path: Path) -> None:
    """A bind mount is another place though the device is one, by either way to ask."""
    said = in_namespace(_places, str(tmp_path))
    assert said == dict.fromkeys(said, True)


def test_nothing_is_said_of_what_is_not_there(tmp_path: Path) -> None:
    """A path that is gone, or is no name, raises nothing here: the request itself does."""
    for path in (f"{tmp_path}/none", f"{tmp_path}/\0"):
        assert place_of(path).fixed == ""


def test_without_linux_the_device_is_the_volume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system tells nothing of mounts, a rename stays on one device, as far as known."""
    monkeypatch.setattr(statx, "statx", None)
    monkeypatch.delattr(os, "O_PATH", raising=False)
    assert place_of(str(tmp_path)) == PathFacts(0, "")
    assert place_of("/") == PathFacts(0, "")
    assert place_of(str(tmp_path)).volume(7) == 7


def test_an_unknown_mount_has_no_type() -> None:
    """A number that no mount has is of no filesystem."""
    assert filesystem(0, 0) == ""
