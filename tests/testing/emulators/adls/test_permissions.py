"""Permissions that are enforced for the user whom a SAS names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from xml.etree import ElementTree

import pytest
from azure.storage import filedatalake
from azure.storage.filedatalake import UserDelegationKey, generate_directory_sas

from tests.testing.emulators.adls.client import Answer, WireClient

USER = "5d56d308-df82-4266-ba63-ef1da3945873"
DENIED = (403, "AuthorizationPermissionMismatch")
_NAMES = {
    "signed_oid": "SignedOid",
    "signed_tid": "SignedTid",
    "signed_start": "SignedStart",
    "signed_expiry": "SignedExpiry",
    "signed_service": "SignedService",
    "signed_version": "SignedVersion",
    "value": "Value",
}


async def _key(wire: WireClient, hours: float = 1) -> UserDelegationKey:
    """Return a delegation key of the emulator."""
    now = datetime.now(UTC)
    start, end = (f"{now + timedelta(hours=_):%Y-%m-%dT%H:%M:%SZ}" for _ in (hours - 2, hours))
    answer = await wire.send(
        "POST",
        f"/{wire.emulator.account}/",
        "restype=service&comp=userdelegationkey",
        body=f"<KeyInfo><Start>{start}</Start><Expiry>{end}</Expiry></KeyInfo>".encode(),
        headers={"Authorization": "Bearer any"},
        signed=False,
    )
    assert answer.status == 200, answer
    found = ElementTree.fromstring(answer.body.decode("utf-8-sig"))
    untyped: Any = filedatalake
    key: UserDelegationKey = untyped.UserDelegationKey()
    for name, tag in _NAMES.items():
        setattr(key, name, found.findtext(tag))
    return key


async def _sas(wire: WireClient, **options: Any) -> str:
    """Return a SAS for the directory ``d`` on behalf of a user."""
    return _sas_of(wire, await _key(wire), **{"agent_object_id": USER, **options})


def _sas_of(wire: WireClient, key: UserDelegationKey, **options: Any) -> str:
    end = datetime.now(UTC) + timedelta(hours=1)
    token: str = generate_directory_sas(
        wire.emulator.account, "data", "d", key, "racwdlmeop", end, **options
    )
    return token


async def _ask(
    wire: WireClient, sas: str, method: str, path: str, query: str = "", **more: Any
) -> Answer:
    place = f"/{wire.emulator.account}/data" + (f"/{path}" if path else "")
    return await wire.send(method, place, f"{query}&{sas}" if query else sas, signed=False, **more)


async def _arrange(wire: WireClient) -> None:
    """Open the way to a directory of the user's, with a file of another's in it."""
    await wire.ask(
        "PATCH", "", "action=setAccessControl", x_ms_acl="user::--x,group::--x,other::--x"
    )
    await wire.ask("PUT", "d", "resource=directory", x_ms_owner=USER)
    await wire.make("d/theirs", b"1")


async def test_rights_are_those_of_the_permissions(wire: WireClient) -> None:
    """In a directory of the user's all may be done, but not to the content of another's file."""
    await _arrange(wire)
    sas = await _sas(wire)

    made = await _ask(wire, sas, "PUT", "d/a/b/own", "resource=file")
    written = await _ask(wire, sas, "PATCH", "d/a/b/own", "action=append&position=0", body=b"1")
    again = await _ask(wire, sas, "PUT", "d/a/b/second", "resource=file")
    listed = await _ask(wire, sas, "GET", "", "resource=filesystem&recursive=false&directory=d")
    read = await _ask(wire, sas, "GET", "d/theirs")
    changed = await _ask(wire, sas, "PATCH", "d/theirs", "action=append&position=1", body=b"1")
    removed = await _ask(wire, sas, "DELETE", "d/theirs")

    statuses = [made.status, written.status, again.status, listed.status, removed.status]
    assert statuses == [201, 202, 201, 200, 200]
    assert [read.brief, changed.brief] == [DENIED, DENIED]
    assert wire.emulator.model.head("data", "d/a/b/own").owner == USER


async def test_moves_need_both_directories(wire: WireClient) -> None:
    """The user's directory may lose a file, and another's not get it."""
    await _arrange(wire)
    await wire.ask("PUT", "d/closed", "resource=directory", x_ms_permissions="0755")
    sas = await _sas(wire)

    denied = await _ask(
        wire, sas, "PUT", "d/closed/f", headers={"x-ms-rename-source": "/data/d/theirs"}
    )
    moved = await _ask(wire, sas, "PUT", "d/f", headers={"x-ms-rename-source": "/data/d/theirs"})

    assert (denied.brief, moved.status) == (DENIED, 201)


async def test_access_control_is_the_owners(wire: WireClient) -> None:
    """Others change neither the list nor the owner, who cannot give the path away."""
    await _arrange(wire)
    sas, query = await _sas(wire), "action=setAccessControl"

    own = await _ask(wire, sas, "PATCH", "d", query, headers={"x-ms-permissions": "0700"})
    given = await _ask(wire, sas, "PATCH", "d", query, headers={"x-ms-owner": "other"})
    theirs = await _ask(wire, sas, "PATCH", "d/theirs", query, headers={"x-ms-owner": USER})

    assert [own.status, given.brief, theirs.brief] == [200, DENIED, DENIED]


@pytest.mark.parametrize("force", [False, True])
async def test_recursive_change_tells_what_failed(wire: WireClient, force: bool) -> None:
    """It ends at the first path of another's, or passes over it if it is forced."""
    await _arrange(wire)
    sas = await _sas(wire)
    await _ask(wire, sas, "PUT", "d/z", "resource=file")
    query = f"action=setAccessControlRecursive&mode=set&maxRecords=2&forceFlag={str(force).lower()}"
    acl = {"x-ms-acl": "user::rwx,group::r-x,other::rwx"}

    answer = await _ask(wire, sas, "PATCH", "d", query, headers=acl)

    assert answer.json == {
        "directoriesSuccessful": 1,
        "filesSuccessful": 0,
        "failureCount": 1,
        "failedEntries": [
            {
                "name": "d/theirs",
                "type": "FILE",
                "errorMessage": "This request is not authorized to perform this operation using "
                "this permission.",
            }
        ],
    }
    assert ("x-ms-continuation" in answer.headers) == force


async def test_delegated_signature_is_verified(wire: WireClient) -> None:
    """It covers the user: one that is added later, or a key of another's making, is refused."""
    await _arrange(wire)
    key, sas = await _key(wire), await _sas(wire)
    free = _sas_of(wire, key)
    key.value = "d3Jvbmc="
    forged = _sas_of(wire, key)

    answers = [
        await _ask(wire, token, "HEAD", "d/theirs", "action=getStatus")
        for token in (free, sas, f"{free}&suoid={USER}", sas.replace("suoid", "saoid"), forged)
    ]

    assert [answer.status for answer in answers] == [200, 200, 403, 403, 403]


async def test_delegated_signature_covers_headers_and_parameters(wire: WireClient) -> None:
    """Those that it names must be sent as they were signed."""
    await wire.make("d/a", b"1")
    options = {"request_headers": {"City": "a,b"}, "request_query_params": {"By$": "me !"}}
    sas = _sas_of(wire, await _key(wire), **options)
    query = "By%24=me%20%21"

    right = await _ask(wire, sas, "GET", "d/a", query, headers={"city": "a,b"})
    other = await _ask(wire, sas, "GET", "d/a", query, headers={"city": "a"})
    without = await _ask(wire, sas, "GET", "d/a", headers={"city": "a,b"})

    assert [answer.status for answer in (right, other, without)] == [200, 403, 403]


async def test_delegation_key_out_of_its_time(wire: WireClient) -> None:
    """A SAS that is still valid needs a key that is."""
    await wire.make("d/a")
    sas = _sas_of(wire, await _key(wire, hours=-1))

    answer = await _ask(wire, sas, "GET", "d/a")

    assert answer.brief == (403, "AuthenticationFailed")


async def test_preauthorized_user_has_all_rights(wire: WireClient) -> None:
    """For one whom the signer vouches for, permissions are not looked at."""
    await _arrange(wire)
    sas = await _sas(wire, agent_object_id=None, preauthorized_agent_object_id=USER)

    assert (await _ask(wire, sas, "GET", "d/theirs")).body == b"1"
