"""Who is let in: keys, shared access signatures and bearer tokens."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import pytest
from azure.storage.filedatalake import (
    generate_account_sas,
    generate_directory_sas,
    generate_file_sas,
    generate_file_system_sas,
)

from tests.testing.emulators.adls.client import Answer, WireClient

FAILED = (403, "AuthenticationFailed")


def _in(hours: float) -> datetime:
    return datetime.now(UTC) + timedelta(hours=hours)


async def _with_sas(
    wire: WireClient, token: str, method: str = "HEAD", path: str = "d/a"
) -> Answer:
    place = f"/{wire.emulator.account}/data/{path}"
    query = {"HEAD": "action=getStatus&", "PUT": "resource=file&"}.get(method, "")
    return await wire.send(method, place, query + token, signed=False)


async def test_key_that_is_another_is_refused(wire: WireClient) -> None:
    """The answer tells what was signed, as the service does."""
    wire.key = base64.b64encode(b"wrong").decode()

    answer = await wire.ask("GET", "a")

    assert answer.brief == FAILED
    detail = answer.json["error"]["detail"]["AuthenticationErrorDetail"]
    assert "string to sign: 'GET\n" in detail
    assert wire.emulator.key not in answer.body.decode()


@pytest.mark.parametrize("skew", [-16 * 60.0, 16 * 60.0])
async def test_clock_that_is_wrong_is_refused(wire: WireClient, skew: float) -> None:
    """A quarter of an hour either way is the most."""
    wire.skew = skew

    assert (await wire.ask("HEAD", "", "resource=filesystem")).brief == FAILED


async def test_clock_that_is_a_little_off_is_not(wire: WireClient) -> None:
    """Ten minutes are allowed."""
    wire.skew = 600.0

    assert (await wire.ask("HEAD", "", "resource=filesystem")).status == 200


async def test_request_without_credentials(wire: WireClient) -> None:
    """The service says whom to ask for a token."""
    answer = await wire.ask("HEAD", "", "resource=filesystem", signed=False)

    assert answer.brief == (401, "NoAuthenticationInformation")
    assert answer.headers["www-authenticate"].startswith("Bearer authorization_uri=")


@pytest.mark.parametrize(
    "header", ["SharedKey", "SharedKey a", "SharedKey a:b:c", "Basic YTpi", "x"]
)
async def test_authorization_that_is_none(wire: WireClient, header: str) -> None:
    """What cannot be read is refused."""
    answer = await wire.ask("HEAD", "", "resource=filesystem", signed=False, authorization=header)

    assert answer.brief == FAILED


async def test_any_bearer_token_is_taken(wire: WireClient) -> None:
    """Unless the emulator is told which are valid."""
    answer = await wire.ask(
        "HEAD", "", "resource=filesystem", signed=False, authorization="Bearer any"
    )

    assert answer.status == 200


@pytest.mark.parametrize(
    "token, detail",
    [("old", "Lifetime validation failed. The token is expired."), ("x", "Signature validation")],
)
async def test_bearer_token_that_is_not_valid(wire: WireClient, token: str, detail: str) -> None:
    """One that expired is told apart from one that is none."""
    wire.emulator.keyring.tokens = {"new"}
    wire.emulator.keyring.expired = {"old"}

    refused = await wire.ask("GET", "a", signed=False, authorization=f"Bearer {token}")
    taken = await wire.ask(
        "HEAD", "", "resource=filesystem", signed=False, authorization="Bearer new"
    )

    assert refused.brief == (401, "InvalidAuthenticationInfo")
    assert refused.headers["www-authenticate"].startswith("Bearer authorization_uri=")
    assert detail in refused.json["error"]["detail"]["AuthenticationErrorDetail"]
    assert taken.status == 200


async def test_sas_of_each_kind_is_verified(wire: WireClient) -> None:
    """Account, filesystem, directory and file, as the Azure SDK makes them."""
    account, key = wire.emulator.account, wire.emulator.key
    await wire.make("d/a")
    end = _in(1)
    tokens = [
        generate_account_sas(account, key, "sco", "rwdl", end),
        generate_file_system_sas(account, "data", key, "rwdl", end),
        generate_directory_sas(account, "data", "d", key, "rwdl", end),
        generate_file_sas(account, "data", "d", "a", key, "rw", end),
    ]

    answers = [await _with_sas(wire, token) for token in tokens]

    assert [answer.status for answer in answers] == [200] * 4


async def test_sas_for_another_place_or_key_is_refused(wire: WireClient) -> None:
    """A signature covers the place it was made for."""
    account, key = wire.emulator.account, wire.emulator.key
    other = base64.b64encode(b"wrong").decode()
    await wire.make("d/a")
    tokens = [
        generate_file_system_sas(account, "other", key, "rwdl", _in(1)),
        generate_directory_sas(account, "data", "e", key, "rwdl", _in(1)),
        generate_file_sas(account, "data", "d", "b", key, "r", _in(1)),
        generate_account_sas(account, other, "sco", "r", _in(1)),
    ]

    answers = [await _with_sas(wire, token) for token in tokens]

    assert [answer.brief for answer in answers] == [FAILED] * 4


@pytest.mark.parametrize("start, end", [(-2, -1), (1, 2)])
async def test_sas_out_of_its_time_is_refused(wire: WireClient, start: int, end: int) -> None:
    """Expired, or not yet valid: the answer tells its time."""
    token = generate_file_system_sas(
        wire.emulator.account, "data", wire.emulator.key, "rl", _in(end), start=_in(start)
    )

    answer = await _with_sas(wire, token, "GET")

    assert answer.brief == FAILED
    detail = answer.json["error"]["detail"]["AuthenticationErrorDetail"]
    assert detail.startswith("Signature not valid in the specified time frame: Start [")


async def test_sas_without_the_permission_is_refused(wire: WireClient) -> None:
    """Who may read may not write."""
    token = generate_file_system_sas(wire.emulator.account, "data", wire.emulator.key, "rl", _in(1))

    answer = await _with_sas(wire, token, "PUT")

    assert answer.brief == (403, "AuthorizationPermissionMismatch")


async def test_sas_without_an_end_is_refused(wire: WireClient) -> None:
    """A signature needs to say until when."""
    assert (await _with_sas(wire, "sig=eA%3D%3D&sp=r&sv=2020-02-10")).brief == FAILED
