"""For a day the answers of a server are kept, in this process and in a file of the user."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from asynccommit.stores.s3.abilities import Abilities
from asynccommit.stores.s3.known_servers import DAY, KnownServers

SERVER, NOW = "https://s3.example/data", 1_795_000_000.0
FOUND = Abilities(*[True] * len(Abilities._fields))._replace(replaces=False)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where the files are, for this test only."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "asynccommit" / "s3"


@pytest.mark.parametrize("same_process", [True, False])
async def test_answers_last_for_a_day(same_process: bool) -> None:
    """Another process reads the file; after a day, or before the time of the answer, nobody."""
    known = KnownServers(Abilities)
    await known.keep(SERVER, NOW, FOUND)

    async def later(server: str, seconds: float) -> Abilities | None:
        return await (known if same_process else KnownServers(Abilities)).recall(
            server, NOW + seconds
        )

    assert [await later(SERVER, age) for age in (0, DAY - 1)] == [FOUND, FOUND]
    assert [await later(SERVER, age) for age in (DAY, -1)] == [None, None]
    assert await later(f"{SERVER}2", 0) is None


@pytest.mark.parametrize("server", ["http://127.0.0.1:9000/data", "https://[::1]:9000/data"])
async def test_ports_of_this_machine_are_not_in_files(server: str, folder: Path) -> None:
    """The process knows the server; another process may find a different one there, and asks."""
    known = KnownServers(Abilities)
    await known.keep(server, NOW, FOUND)

    assert await known.recall(server, NOW) == FOUND
    assert await KnownServers(Abilities).recall(server, NOW) is None
    assert not folder.exists()


async def test_without_a_place_for_files_the_process_knows(folder: Path) -> None:
    """A cache that cannot be written is no error."""
    folder.parent.write_bytes(b"in the way")
    known = KnownServers(Abilities)
    await known.keep(SERVER, NOW, FOUND)

    assert await known.recall(SERVER, NOW) == FOUND
    assert await KnownServers(Abilities).recall(SERVER, NOW) is None


WRONG: dict[str, Any] = {
    "no JSON": b"{",
    "deeply nested": b"[" * 4000,
    "not UTF-8": b"\xff\xfe\xfd",
    "a list": [],
    "of another server": {"server": "https://other/data"},
    "a number for an answer": {"puts": 1},
    "a text for an answer": {"ends": "true"},
    "a time that is none": {"at": "now"},
    "a time that is true": {"at": True},
    "not a number": {"at": float("nan")},
    "a time to come": {"at": NOW + 60},
    "more than was written": {"more": True},
    "too large": b" " * 5000,
}


@pytest.mark.parametrize("name", WRONG)
async def test_a_file_that_is_not_as_written_says_nothing(name: str, folder: Path) -> None:
    """The server is asked again."""
    await KnownServers(Abilities).keep(SERVER, NOW, FOUND)
    [path] = folder.iterdir()
    told, change = json.loads(path.read_bytes()), WRONG[name]
    if isinstance(change, dict):
        change = {**told, **change}
    path.write_bytes(change if isinstance(change, bytes) else json.dumps(change).encode())

    assert await KnownServers(Abilities).recall(SERVER, NOW) is None


async def test_a_file_without_an_answer_says_nothing(folder: Path) -> None:
    """All the answers are there, or none."""
    await KnownServers(Abilities).keep(SERVER, NOW, FOUND)
    [path] = folder.iterdir()
    told = json.loads(path.read_bytes())
    del told["ends"]
    path.write_text(json.dumps(told))

    assert await KnownServers(Abilities).recall(SERVER, NOW) is None
