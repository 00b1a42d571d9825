"""Emulators that keep their state in a folder: what is there after a stop and after a kill."""

from __future__ import annotations

import asyncio
import json
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from asynccommit.errors import OptionError
from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from asynccommit.testing.emulators.emulator import Emulator
from asynccommit.testing.emulators.gcs.emulator import GcsEmulator
from asynccommit.testing.emulators.saved_state import StateFolder, packed
from asynccommit.testing.models.adls.account import Attributes
from asynccommit.testing.models.gcs.model import BucketOptions, ListQuery
from asynccommit.testing.models.gcs.objects import Details
from tests.testing.emulators.adls.client import WireClient
from tests.testing.emulators.gcs.client import GcsClient

COMMAND = [sys.executable, "-c", "from asynccommit.cli import main; main()", "emulate"]


async def test_account_is_as_it_was(tmp_path: Path) -> None:
    """Files, properties, ACLs, leases, unflushed bytes and etags; etags go on from there."""
    async with AdlsEmulator(data=tmp_path, filesystems=["data"]) as emulator:
        async with WireClient(emulator) as client:
            await client.ask("PUT", "d/f", "resource=file")
        model = emulator.model
        model.append("data", "d/f", 0, b"hello", flush=True)
        model.append("data", "d/f", 5, b" world")
        model.create("data", "x", attributes=Attributes(properties={"k": "v"}, acl="user::rwx"))
        lease = model.lease("data", "x", "acquire", duration=-1).id
        old = model.head("data", "x")

    async with AdlsEmulator(data=tmp_path, filesystems=["data", "more"]) as emulator:
        model = emulator.model
        found = model.head("data", "x")
        assert model.read("data", "d/f")[1] == b"hello"
        assert (found.etag, found.acl, found.properties) == (old.etag, old.acl, {"k": "v"})
        assert found.lease is not None
        assert found.lease.id == lease
        model.flush("data", "d/f", 11)
        assert model.read("data", "d/f")[1] == b"hello world"
        assert model.create("more", "new").version > old.version


async def test_buckets_are_as_they_were(tmp_path: Path) -> None:
    """Objects, older generations, folders and options; generations go on from there."""
    options = BucketOptions(hns=False, versioning=True)
    async with GcsEmulator(data=tmp_path, buckets={"data": options}) as emulator:
        async with GcsClient(emulator) as client:
            await client.send("GET", "/storage/v1/b/data")
        service = emulator.service
        service.insert("data", "a", b"one", details=Details(metadata={"k": "v"}))
        old = service.insert("data", "a", b"two")
        service.create_bucket("other", BucketOptions(hns=True))
        service.insert_folder("other", "d/")

    async with GcsEmulator(data=tmp_path, buckets={"data": options}) as emulator:
        service = emulator.service
        assert service.get("data", "a").content.data == b"two"
        assert len(service.list("data", ListQuery(versions=True)).items) == 2
        assert service.get_folder("other", "d/").name == "d/"
        assert service.insert("data", "b", b"").generation > old.generation


@pytest.mark.parametrize("kind", [AdlsEmulator, GcsEmulator])
async def test_folder_has_one_emulator(tmp_path: Path, kind: Callable[..., Emulator]) -> None:
    """A second one is refused while the first runs, and may follow it."""
    async with kind(data=tmp_path):
        with pytest.raises(OptionError, match="another emulator uses this folder"):
            await kind(data=tmp_path).start()
    async with kind(data=tmp_path):
        pass


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """The error names the file and the remedy; the file stays as it is."""
    folder = StateFolder(tmp_path, "adls")
    folder.save(packed({"a": 1}))
    whole = folder.file.read_bytes()
    for content, text in (
        (whole[:-1] + b"?", "is damaged"),
        (b"hello", "is not a state"),
        (whole.replace(b'"format": 2', b'"format": 9'), "format 9"),
        (whole.replace(b'"adls"', b'"gcs"'), "the state of gcs"),
    ):
        folder.file.write_bytes(content)
        with pytest.raises(OptionError, match=f"adls.state .*{text}.*delete the file"):
            folder.open()
        assert folder.file.read_bytes() == content
    folder.file.write_bytes(whole)
    assert folder.open() == {"a": 1}
    folder.close()


@pytest.mark.parametrize("value", [print, subprocess.Popen, Path("/"), StateFolder])
def test_only_models_are_read_back(tmp_path: Path, value: object) -> None:
    """A state that names a function or a class of anything else is refused."""
    content = pickle.dumps(value)
    head = {"format": 2, "kind": "adls", "sha256": sha256(content).hexdigest()}
    folder = StateFolder(tmp_path, "adls")
    folder.file.write_bytes(json.dumps(head).encode() + b"\n" + content)

    with pytest.raises(OptionError, match="is not part of a state"):
        folder.open()


async def test_state_of_another_account_is_refused(tmp_path: Path) -> None:
    """Flat or not, and the names of accounts."""
    async with AdlsEmulator(data=tmp_path) as emulator:
        await emulator.save()
    with pytest.raises(OptionError, match="leave out --flat"):
        await AdlsEmulator(data=tmp_path, hns=False).start()
    with pytest.raises(OptionError, match="'devstoreaccount1', which is not served"):
        await AdlsEmulator(data=tmp_path, accounts={"other": "a2V5"}).start()
    with pytest.raises(OptionError, match="start it with --data"):
        await AdlsEmulator().save()


async def test_state_survives_a_kill(tmp_path: Path) -> None:
    """The command saves while it runs: what was saved is there after SIGKILL."""
    first = await _serving(tmp_path)
    assert await asyncio.to_thread(_ask, "PUT", await _url(first), "?resource=directory") == 201
    saved = tmp_path / "adls.state"
    await asyncio.to_thread(_wait_for, saved)
    first.kill()
    await first.wait()

    second = await _serving(tmp_path)
    assert await asyncio.to_thread(_ask, "HEAD", await _url(second)) == 200
    second.terminate()
    assert await second.wait() == 0


def _wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.05)


async def _serving(folder: Path) -> asyncio.subprocess.Process:
    options = ("adls", "--port", "0", "--json", "-f", "data", "--data", str(folder))
    return await asyncio.create_subprocess_exec(*COMMAND, *options, stdout=subprocess.PIPE)


async def _url(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    facts: Any = json.loads(await process.stdout.readuntil(b"}\n"))
    return f"{facts['url']}/data/d"


def _ask(method: str, url: str, query: str = "") -> int:
    request = Request(url + query, method=method, headers={"Authorization": "Bearer any"})
    with urlopen(request, timeout=60) as answer:
        return int(answer.status)


def test_command_loads_only_what_it_needs() -> None:
    """The emulators start without jobs, stores, demos and the libraries of other commands."""
    code = (
        "import sys; sys.argv[1:] = ['emulate', 'adls', '--help']\n"
        "from asynccommit.cli import main; main()\n"
        "bad = ('asynccommit.api', 'asynccommit.commit.', 'asynccommit.demo', 'asynccommit.spark',"
        " 'asynccommit.cli.commands', 'aiohttp', 'pyspark')\n"
        "found = [name for name in sys.modules if name.startswith(bad)]\n"
        "assert not found, found"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
