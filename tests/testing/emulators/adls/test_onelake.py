"""The mode ``onelake`` answers as Microsoft's page on the parity of the interfaces says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import quote

import pytest

from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from asynccommit.testing.models.adls.onelake import guid_of
from tests.testing.emulators.adls.raw import Raw, Reply

WORKSPACE = "My Work_Space"
ITEM = "Sales.Lakehouse"
HERE = f"/{quote(WORKSPACE)}"
FILE = f"{HERE}/{ITEM}/Files/t/a"
HOST = "onelake.dfs.fabric.microsoft.com"


class Client(Raw):
    """A connection whose requests bear a token."""

    async def ask(self, line: str, *, host: str = HOST, **headers: str) -> Reply:
        """Send a request without a body; underscores of headers are hyphens."""
        if "restype" in line or "comp=" in line:
            host = host.replace(".dfs.", ".blob.")
        sent = {"host": host, "content-length": "0", "authorization": "Bearer t", **headers}
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in sent.items())
        data = f"{line} HTTP/1.1\r\n{lines}\r\n".encode()
        return await self.talk(data, bodiless=line.startswith("HEAD"))


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """A client of an emulator with one item, and one file in it."""
    async with AdlsEmulator(onelake={WORKSPACE: [ITEM]}) as emulator, Client(emulator) as opened:
        assert (await opened.ask(f"PUT {FILE}?resource=file")).status == 201
        yield opened


@pytest.mark.parametrize(
    "line",
    [
        f"HEAD {HERE}?resource=filesystem",
        "HEAD /?resource=account",
        f"GET {HERE}?resource=filesystem&recursive=false",
        f"GET {HERE}?restype=container&comp=list&delimiter=%2F",
        f"GET {HERE}?resource=filesystem&recursive=false&directory={ITEM}",
        f"HEAD {HERE}/{ITEM}?action=getStatus",
        f"PUT {HERE}/{ITEM}/Files/new?resource=directory",
        f"HEAD {FILE}",
        f"DELETE {FILE}",
    ],
)
async def test_what_the_page_allows_is_done(line: str, client: Client) -> None:
    """HEAD and listings everywhere, and every change below a managed folder."""
    assert (await client.ask(line)).status in (200, 201)


@pytest.mark.parametrize(
    "line",
    [
        "GET /?resource=account",
        "GET /?comp=list",
        f"GET {HERE}?restype=container",
        "PUT /new?resource=filesystem",
        "PUT /new?restype=container",
        f"DELETE {HERE}?resource=filesystem",
        f"PATCH {HERE}?resource=filesystem",
        f"PUT {HERE}?restype=container&comp=acl",
        f"PUT {HERE}/New.Lakehouse?resource=directory",
        f"DELETE {HERE}/{ITEM}?recursive=true",
        f"PUT {HERE}/{ITEM}/New?resource=directory",
        f"DELETE {HERE}/{ITEM}/Files?recursive=true",
        f"PATCH {FILE}?action=setAccessControl",
        f"PATCH {FILE}?action=setAccessControlRecursive&mode=set",
    ],
)
async def test_what_the_page_forbids_is_refused(line: str, client: Client) -> None:
    """Workspaces, items, their folders and permissions are Fabric's."""
    answer = await client.ask(line, x_ms_acl="user::rwx")
    assert 400 <= answer.status < 500
    assert (await client.ask(f"HEAD {FILE}")).status == 200


@pytest.mark.parametrize(
    "name, value",
    [
        ("x-ms-owner", "me"),
        ("x-ms-group", "us"),
        ("x-ms-permissions", "0777"),
        ("x-ms-acl", "user::rwx"),
        ("x-ms-acls", "user::rwx"),
        ("x-ms-encryption-key", "a2V5"),
        ("x-ms-encryption-algorithm", "AES256"),
        ("x-ms-access-tier", "Cool"),
    ],
)
async def test_ignored_headers_are_named(name: str, value: str, client: Client) -> None:
    """The request is done without them."""
    made = await client.ask(f"PUT {HERE}/{ITEM}/Files/b?resource=file", **{name: value})
    assert made.status == 201
    assert made.headers["x-ms-rejected-headers"] == name


async def test_conditions_and_tokens_are_obeyed(client: Client) -> None:
    """The page lists none of them among what is ignored."""
    again = await client.ask(f"PUT {FILE}?resource=file", if_none_match="*")
    assert (again.status, "x-ms-rejected-headers" in again.headers) == (409, False)


async def test_owners_and_permissions_say_nothing(client: Client) -> None:
    """They are the same for every path; the ACL is that of the caller."""
    for line in (f"HEAD {FILE}?action=getAccessControl", f"HEAD {FILE}"):
        told = (await client.ask(line)).headers
        assert told["x-ms-owner"] == told["x-ms-group"] == "$superuser"
        assert told["x-ms-permissions"] == "---------"
        assert told["x-ms-acl"] == "rwx"


async def test_guids_and_regions_lead_to_the_same_files(client: Client) -> None:
    """As do the host of a region, and an account's name in the path."""
    workspace, item = guid_of(WORKSPACE), guid_of(f"{WORKSPACE}/{ITEM}")
    by_id = await client.ask(f"HEAD /{workspace}/{item}/Files/t/a")
    region = await client.ask(f"HEAD {FILE}", host=f"westus-{HOST}")
    path = await client.ask(f"HEAD /onelake{FILE}", host="127.0.0.1")
    assert by_id.headers["etag"] == region.headers["etag"] == path.headers["etag"]


@pytest.mark.parametrize("credential", ["SharedKey onelake:c2ln", ""])
async def test_keys_and_signatures_are_refused(credential: str, client: Client) -> None:
    """Tokens alone are accepted."""
    line = f"HEAD {FILE}?sig=x&se=2999-01-01&sp=r" if not credential else f"HEAD {FILE}"
    assert (await client.ask(line, authorization=credential)).status == 403
