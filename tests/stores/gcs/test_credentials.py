"""What is added to a request, and that it stays secret."""

from __future__ import annotations

import json
import math
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest
from google.auth.compute_engine import Credentials
from google.auth.credentials import AnonymousCredentials

from asynccommit.errors import OptionError, UnsupportedError
from asynccommit.stores.gcs.credentials import (
    GcsAnonymous,
    GcsCredential,
    GcsTokens,
    credential_of,
    opener,
)
from asynccommit.stores.gcs.endpoint import find_place
from asynccommit.stores.gcs.hadoop import GcsConnectorOptions
from asynccommit.stores.gcs.identity import GoogleAccount
from asynccommit.stores.gcs.tokens import GcloudSource, ObjectSource
from asynccommit.stores.http.base import HttpSettings
from asynccommit.stores.http.tokens import Fresh, Holder, TokenError
from asynccommit.stores.urls import parse_url
from tests.support.google import IdentityServer, authorized_user


class Given:
    """A source with one token."""

    secrets = ("hunter2",)
    holder = Holder("a test", "none")

    async def ask(self) -> Fresh:
        """Give it."""
        return Fresh("ya29.token", 5000.0)

    def explain(self, error: Exception) -> TokenError:
        """There is nothing to explain."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Nothing is held."""


async def test_nobody_adds_nothing() -> None:
    """What is public needs no more; nothing is ever renewed."""
    credential: GcsCredential = GcsAnonymous()
    headers: dict[str, str] = {}
    credential.authorize(headers)
    await credential.renew()

    assert headers == {}
    assert credential.anonymous
    assert credential.renew_at == math.inf
    assert not await credential.refused(headers)
    assert credential.hide("text") == "text"
    assert repr(credential) == "GcsAnonymous()"
    await credential.aclose()


async def test_a_token_is_a_header() -> None:
    """As soon as there is one, and of one kind only."""
    credential: GcsCredential = GcsTokens(Given(), lambda: 1000.0)
    assert credential.renew_at <= 1000.0
    await credential.renew()
    headers = {"x": "y"}
    credential.authorize(headers)

    assert headers == {"x": "y", "authorization": "Bearer ya29.token"}
    assert not credential.anonymous
    assert credential.renew_at == 4700.0
    await credential.aclose()


@pytest.mark.parametrize("text", ["hunter2", "ya29.token", "Bearer ya29.token!"])
async def test_secrets_are_hidden(text: str) -> None:
    """Those of the source and the token itself, and a repr has none."""
    credential = GcsTokens(Given(), lambda: 1000.0)
    await credential.renew()

    assert "***" in credential.hide(text)
    assert "ya29" not in credential.hide(text) + repr(credential)


URL = "https://oauth2.googleapis.com/token"
USER = authorized_user(URL)
HERE = "http://127.0.0.1:4443"
THERE = "http://emulator:4443"
EMULATOR = "STORAGE_EMULATOR_HOST"
ADC = "GOOGLE_APPLICATION_CREDENTIALS"


def credential(
    told: dict[str, Any] | None = None,
    hadoop: dict[str, str] | None = None,
    environ: dict[str, str] | None = None,
    endpoint: str | None = None,
    library: str | None = None,
) -> GcsCredential:
    """Return the credential that counts."""
    around = {"HOME": "/nowhere", "USER": "ann", **(environ or {})}
    named = None if endpoint is None else ("endpoint_url", endpoint)
    place = find_place(parse_url("gs://data/t"), named, "", around)
    options = GcsConnectorOptions(hadoop or {})
    given = opener(HttpSettings(), library)
    return credential_of(told or {}, options, place, given, around, lambda: 1e9)


def account(found: GcsCredential) -> GoogleAccount:
    """Return who asks, as a thread finds out."""
    assert isinstance(found, GcsTokens)
    source = found._source
    assert isinstance(source, GcloudSource)
    who = source._load()
    assert isinstance(who, GoogleAccount)
    return who


@pytest.mark.parametrize(
    "told, hadoop, kind",
    [
        ({}, {}, "metadata"),
        ({"token": "google_default"}, {}, "metadata"),
        ({"token": "cloud"}, {}, "metadata"),
        ({"token": USER}, {}, "authorized_user"),
        ({"token": json.dumps(USER)}, {}, "authorized_user"),
        ({"token": USER}, {"fs.gs.auth.type": "UNAUTHENTICATED"}, "authorized_user"),
        ({}, {"fs.gs.auth.type": "COMPUTE_ENGINE"}, "metadata"),
        (
            {},
            {
                "fs.gs.auth.client.id": "c",
                "fs.gs.auth.client.secret": "s",
                "fs.gs.auth.refresh.token": "r",
            },
            "authorized_user",
        ),
    ],
)
def test_an_option_chooses(told: dict[str, Any], hadoop: dict[str, str], kind: str) -> None:
    """Ours before Hadoop's, and what the machine has if neither says."""
    assert account(credential(told, hadoop)).kind == kind


def test_the_environment_is_what_the_machine_has(tmp_path: Path) -> None:
    """It is the store's environment, not that of the process; options count before it."""
    path = tmp_path / "key.json"
    path.write_text(json.dumps({**USER, "client_id": "of the variable"}))
    around = {ADC: str(path)}

    assert account(credential(environ=around)).data["client_id"] == "of the variable"
    assert account(credential({"token": USER}, environ=around)).data["client_id"] == "client"
    assert account(credential({"token": path})).data["client_id"] == "of the variable"
    assert isinstance(credential({"token": "anon"}, environ=around), GcsAnonymous)


@pytest.mark.parametrize(
    "told, hadoop",
    [
        ({"token": "anon"}, {}),
        ({"token": " anon "}, {}),
        ({"token": "anon"}, {"fs.gs.auth.type": "COMPUTE_ENGINE"}),
        ({}, {"fs.gs.auth.type": "UNAUTHENTICATED"}),
        ({"token": AnonymousCredentials()}, {}),  # type: ignore[no-untyped-call]
    ],
)
def test_nobody_may_be_said(told: dict[str, Any], hadoop: dict[str, str]) -> None:
    """For what is public; it may be asked for over any network."""
    for endpoint in (None, HERE, THERE):
        assert isinstance(credential(told, hadoop, endpoint=endpoint), GcsAnonymous)


@pytest.mark.parametrize(
    "environ, endpoint, anonymous",
    [
        ({}, None, False),
        ({EMULATOR: "default"}, None, False),
        ({EMULATOR: "127.0.0.1:4443"}, None, True),
        ({EMULATOR: "emulator:4443", ADC: "/key.json"}, None, True),
        ({EMULATOR: "https://emulator"}, None, True),
        ({EMULATOR: "https://storage-x.p.googleapis.com"}, None, False),
        ({ADC: "/key.json"}, HERE, True),
        ({}, THERE, True),
        ({}, "https://storage.example.com", False),
        ({}, "https://storage.googleapis.com", False),
    ],
)
def test_an_emulator_is_not_shown_the_machines_credentials(
    environ: dict[str, str], endpoint: str | None, anonymous: bool
) -> None:
    """Only those that options name; what stands in for Google over TLS is no emulator."""
    found = credential(environ=environ, endpoint=endpoint)

    assert isinstance(found, GcsAnonymous if anonymous else GcsTokens)


def test_an_emulator_gets_the_credential_that_is_named() -> None:
    """If it is on this machine, or behind TLS."""
    assert isinstance(credential({"token": USER}, endpoint=HERE), GcsTokens)
    assert isinstance(credential({"token": USER}, endpoint="https://emulator"), GcsTokens)
    assert isinstance(credential({"token": "ya29.x"}, environ={EMULATOR: "[::1]:1"}), GcsTokens)


@pytest.mark.parametrize(
    "told, hadoop",
    [
        ({"token": USER}, {}),
        ({"token": "google_default"}, {}),
        ({"token": "ya29.hunter2"}, {}),
        ({}, {"fs.gs.auth.type": "COMPUTE_ENGINE"}),
    ],
)
@pytest.mark.parametrize("endpoint", [THERE, "http://storage.googleapis.com"])
def test_tokens_cross_no_network_in_the_clear(
    told: dict[str, Any], hadoop: dict[str, str], endpoint: str
) -> None:
    """Whoever names an emulator elsewhere says token='anon', or gives it TLS."""
    with pytest.raises(OptionError, match="tokens are not sent to http://") as caught:
        credential(told, hadoop, endpoint=endpoint)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "access, scope",
    [
        ({}, "devstorage.full_control"),
        ({"access": "read_write"}, "devstorage.read_write"),
        ({"access": "read_only"}, "devstorage.read_only"),
    ],
)
def test_access_is_what_tokens_are_asked_for(access: dict[str, Any], scope: str) -> None:
    """As in gcsfs."""
    found = account(credential({"token": USER, **access}))

    assert found.scope == f"https://www.googleapis.com/auth/{scope}"


def test_whom_to_act_as_is_the_users(tmp_path: Path) -> None:
    """Hadoop's user, if the environment names one."""
    act = "fs.gs.auth.impersonation.service.account"
    conf = {f"{act}.for.user.ann": "ann@p", f"{act}.for.user.bob": "bob@p", act: "all@p"}

    assert account(credential(hadoop=conf)).principal == "ann@p"
    bob = credential(hadoop=conf, environ={"HADOOP_USER_NAME": "bob"})
    assert account(bob).principal == "bob@p"
    nobody = credential(hadoop=conf, environ={"USER": ""})
    assert account(nobody).principal == "all@p"


@pytest.mark.parametrize(
    "told, error, message",
    [
        (
            {"token": "cache"},
            OptionError,
            "token is 'cache', which is supported only by gcsfs: give",
        ),
        ({"token": "browser"}, OptionError, "run gcloud auth application-default login instead"),
        ({"token": 5}, OptionError, "token is a int: give the path"),
        ({"token": b"ya29.hunter2"}, OptionError, "token is a bytes: give the path"),
        ({"token": {**USER, "refresh_token": ""}}, OptionError, "lacks refresh_token"),
        (
            {"token": {"type": "gdch"}},
            UnsupportedError,
            "credentials of type 'gdch' are not supported",
        ),
        ({"token": "anon", "access": "all"}, OptionError, "access is 'all': expected read_only"),
    ],
)
def test_what_is_no_credential_is_refused(
    told: dict[str, Any], error: type[Exception], message: str
) -> None:
    """At once, with what to give instead, and no secret."""
    with pytest.raises(error, match=message) as caught:
        credential(told)
    assert "hunter" not in "".join(traceback.format_exception(caught.value))


def test_an_object_of_google_auth_is_taken() -> None:
    """Of whichever class, as long as it has a token."""
    found = credential({"token": Credentials()})  # type: ignore[no-untyped-call]

    assert isinstance(found, GcsTokens)
    assert isinstance(found._source, ObjectSource)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what installs it; an object of google.auth does without."""
    monkeypatch.setitem(sys.modules, "gcloud.aio.auth", None)

    with pytest.raises(UnsupportedError, match=r"asynccommit\[gcs\].*google\.auth"):
        credential({"token": USER})
    assert isinstance(credential({"token": "anon"}), GcsAnonymous)
    given = Credentials()  # type: ignore[no-untyped-call]
    assert isinstance(credential({"token": given}), GcsTokens)


@pytest.mark.parametrize("library", ["aiohttp", "pyreqwest", "sdk", None])
async def test_tokens_are_asked_as_the_store_asks(library: str | None) -> None:
    """By the library that it uses, and under its name."""
    async with IdentityServer() as server:
        found = credential({"token": authorized_user(server.url("/token"))}, library=library)
        await found.renew()
        await found.aclose()

        assert "asynccommit/" in server.requests[0].headers["user-agent"]


async def test_a_store_that_asked_nobody_closes_nothing() -> None:
    """No connection was opened for it."""
    for told in ({"token": USER}, {"token": Credentials()}):  # type: ignore[no-untyped-call]
        await credential(told).aclose()


async def test_a_file_that_is_missing_is_told_by_the_first_request() -> None:
    """Not before: reading files would keep the loop waiting."""
    found = credential({"token": "/no/key.json"})

    with pytest.raises(TokenError, match="there is no such file") as caught:
        await found.renew()
    assert not caught.value.again
