"""Files of another disk with the numbers, times and digests that they have on this one.

State files name files by inode number and time of change, and one another by digest. So what is
brought from elsewhere is written first, then each text in which something is named by what it has
here, until nothing changes any more.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from asynccommit.stores.local.moves import etag_of

_ROUNDS = 20
_FORMER = "%x-%x-%x"


def unpack(root: Path, rows: Mapping[str, list[Any]], former: str) -> Callable[[str], str]:
    """Write files to a directory, and return a function that makes a text one about them.

    Args:
        root: the directory, which may be missing.
        rows: path -> content as text, inode number and time of change; ``None`` for a directory.
        former: the directory that they were taken from.
    """
    files: dict[str, tuple[str, int, int]] = {}
    root.mkdir(parents=True, exist_ok=True)
    for path, (text, *facts) in sorted(rows.items()):
        there = Path(f"{root}{path}")
        if text is None:
            there.mkdir(exist_ok=True)
        else:
            files[path] = (text, *facts)
            twin = next((one for one, known in files.items() if known[1] == facts[0]), path)
            if twin == path:
                _write(there, text, facts[1])
            else:
                there.hardlink_to(f"{root}{twin}")
    names: dict[str, str] = {former: str(root)}
    for _ in range(_ROUNDS):
        changed = _signed(root, files, names)
        for path, (text, _, time) in files.items():
            _write(Path(f"{root}{path}"), _renamed(text, changed), time)
        if changed == names:
            return lambda text: _renamed(text, changed)
        names = changed
    raise AssertionError("two state files name each other by digest")


def _signed(
    root: Path, files: Mapping[str, tuple[str, int, int]], names: Mapping[str, str]
) -> dict[str, str]:
    """Return all names again, by the files as they are now."""
    found = dict(names)
    for path, (text, number, time) in files.items():
        there, old = Path(f"{root}{path}"), text.encode("utf-8", "surrogateescape")
        found[_FORMER % (number, time, len(old))] = etag_of(there.stat())
        if (new := there.read_bytes()) != old:
            found[sha256(old).hexdigest()] = sha256(new).hexdigest()
    return found


def _renamed(text: str, names: Mapping[str, str]) -> str:
    every = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.sub(every, lambda found: names[found[0]], text)


def _write(path: Path, text: str, time: int) -> None:
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    os.utime(path, ns=(time, time))
