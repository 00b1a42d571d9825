"""Filesystems and accounts over the dfs endpoint, and the probe for a hierarchical namespace."""

from __future__ import annotations

import base64

import pytest

from asynccommit.errors import OptionError
from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from tests.testing.emulators.adls.client import WireClient

KEY = base64.b64encode(b"another key").decode()


async def test_filesystem_from_create_to_delete(wire: WireClient) -> None:
    """It is there once, tells about itself, and can be deleted."""
    wire.filesystem = "other"

    made = await wire.ask("PUT", "", "resource=filesystem", x_ms_properties="k=dg==")
    again = await wire.ask("PUT", "", "resource=filesystem")
    told = await wire.ask("HEAD", "", "resource=filesystem&timeout=90")
    deleted = await wire.ask("DELETE", "", "resource=filesystem")
    gone = await wire.ask("HEAD", "", "resource=filesystem")

    assert made.status == 201
    assert made.headers["x-ms-namespace-enabled"] == "true"
    assert again.brief == (409, "FilesystemAlreadyExists")
    assert told.headers["x-ms-properties"] == "k=dg=="
    assert told.etag == made.etag
    assert deleted.status == 202
    assert gone.brief == (404, "FilesystemNotFound")


async def test_filesystem_properties_are_replaced(wire: WireClient) -> None:
    """A PATCH sets them and changes the etag."""
    answer = await wire.ask("PATCH", "", "resource=filesystem", x_ms_properties="k=dg==")

    told = await wire.ask("HEAD", "", "resource=filesystem")
    assert answer.status == 200
    assert told.headers["x-ms-properties"] == "k=dg=="


async def test_filesystem_needs_a_name_that_is_one(wire: WireClient) -> None:
    """Capitals are refused."""
    wire.filesystem = "Data"

    answer = await wire.ask("PUT", "", "resource=filesystem")

    assert answer.brief == (400, "InvalidResourceName")


async def test_everything_in_a_missing_filesystem_is_404(wire: WireClient) -> None:
    """The filesystem is missed before the path."""
    wire.filesystem = "none"

    answers = [
        await wire.ask("HEAD", "a", "action=getStatus"),
        await wire.ask("PUT", "a", "resource=file"),
        await wire.ask("GET", "", "resource=filesystem&recursive=true"),
        await wire.rename("a", "b"),
        await wire.ask("DELETE", "a"),
    ]

    assert {answer.brief for answer in answers} == {(404, "FilesystemNotFound")}


async def test_filesystems_are_listed(wire: WireClient) -> None:
    """By prefix, in pages."""
    for name in ("data2", "else"):
        wire.emulator.model.create_filesystem(name)

    answer = await wire.ask("GET", None, "resource=account&prefix=data&maxResults=1")
    token = answer.headers["x-ms-continuation"]
    rest = await wire.ask("GET", None, f"resource=account&prefix=data&continuation={token}")

    assert [_["name"] for _ in answer.json["filesystems"]] == ["data"]
    assert [_["name"] for _ in rest.json["filesystems"]] == ["data2"]
    assert "x-ms-continuation" not in rest.headers


async def test_probe_of_a_hierarchical_namespace(wire: WireClient) -> None:
    """The root's access control list is told where there are directories."""
    answer = await wire.ask("HEAD", "", "action=getAccessControl&upn=false")
    slash = await wire.send(
        "HEAD", f"/{wire.emulator.account}/data/", "action=getAccessControl&upn=false"
    )

    assert answer.status == slash.status == 200
    assert answer.headers["x-ms-acl"] == "user::rwx,group::r-x,other::---"


async def test_initial_filesystems_are_there_after_a_reset() -> None:
    """Every account has them; what was made later is gone, and a wrong name is refused."""
    accounts = {"one": "a2V5", "two": "a2V5"}
    emulator = AdlsEmulator(accounts=accounts, filesystems=["data", "data"])
    emulator.model.create_filesystem("other")
    emulator.model.create("data", "file")
    emulator.reset()

    for model in emulator.accounts.values():
        assert [found.name for found in model.list_filesystems()[0]] == ["data"]
        assert model.list("data").entries == []
    with pytest.raises(OptionError, match="filesystem 'A'"):
        AdlsEmulator(filesystems=["A"])


async def test_probe_of_a_flat_namespace() -> None:
    """The same question is refused with 400, which is how clients tell."""
    async with AdlsEmulator(hns=False) as emulator, WireClient(emulator) as wire:
        emulator.model.create_filesystem("data")

        answer = await wire.ask("HEAD", "", "action=getAccessControl&upn=false")
        told = await wire.ask("HEAD", "", "resource=filesystem")

    assert answer.brief == (400, "HierarchicalNamespaceNotEnabled")
    assert told.headers["x-ms-namespace-enabled"] == "false"


async def test_account_may_be_in_the_host_name(wire: WireClient) -> None:
    """A request that came through a name of the real kind has no account in its path."""
    host = {"Host": f"{wire.emulator.account}.dfs.core.windows.net"}

    answer = await wire.send("PUT", "/data/a", "resource=file", headers=host)

    assert answer.status == 201
    assert await wire.names() == ["a"]


async def test_target_may_be_a_whole_url(wire: WireClient) -> None:
    """As it is sent to a proxy."""
    place = f"/{wire.emulator.account}/data"
    signed = await wire.send("HEAD", f"http://else{place}", "resource=filesystem", signed=False)

    assert signed.brief == (401, "NoAuthenticationInformation")


async def test_accounts_are_apart() -> None:
    """Two accounts share a port and nothing else; a third is not there."""
    accounts = {"first": KEY, "second": KEY}
    async with AdlsEmulator(accounts=accounts) as emulator, WireClient(emulator) as wire:
        emulator.accounts["second"].create_filesystem("data")

        own = await wire.ask("HEAD", "", "resource=filesystem")
        foreign = await wire.send("HEAD", "/second/data", "resource=filesystem")
        missing = await wire.send("HEAD", "/third/data", "resource=filesystem")

    assert own.brief == (404, "FilesystemNotFound")
    assert foreign.brief == (403, "AuthenticationFailed")
    assert missing.brief == (404, "ResourceNotFound")
