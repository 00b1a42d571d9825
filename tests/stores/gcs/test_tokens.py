"""Tokens of gcloud-aio-auth and google-auth, from servers that speak as Google's do."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jwt
import pytest
import trustme
from google.auth.exceptions import RefreshError
from google.oauth2 import credentials as users
from google.oauth2 import service_account as services

from asynccommit.stores.gcs import identity as gcs_identity
from asynccommit.stores.gcs.credentials import GcsTokens
from asynccommit.stores.gcs.identity import Identity
from asynccommit.stores.gcs.tokens import GcloudSource, ObjectSource
from asynccommit.stores.http.base import HttpSettings, Transport
from asynccommit.stores.http.client import TRANSPORTS, open_transport
from asynccommit.stores.http.tokens import TokenError
from tests.support.google import (
    METADATA,
    SECRETS,
    IdentityServer,
    Reply,
    Request,
    authorized_user,
    pem,
    private_key,
    service_account,
)
from tests.support.servers import Proxy, RawServer, drip, silent

SCOPE = "https://www.googleapis.com/auth/devstorage.full_control"
CLOUD = "https://www.googleapis.com/auth/cloud-platform"
QUICK = HttpSettings(connect_timeout=5.0, read_timeout=0.2, total_timeout=5.0)

Make = Callable[..., GcsTokens]


class Clock:
    """Seconds since the epoch, as set."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        """Tell them."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """A clock that is moved by hand."""
    return Clock()


@pytest.fixture
async def server() -> AsyncIterator[IdentityServer]:
    """A server that gives tokens."""
    async with IdentityServer() as found:
        yield found


@pytest.fixture(params=sorted(TRANSPORTS))
async def make(request: pytest.FixtureRequest, clock: Clock) -> AsyncIterator[Make]:
    """Make the tokens of an identity, with either library, and close them in the end."""
    made: list[GcsTokens] = []

    def tokens(identity: Any, environ: dict[str, str] | None = None, **settings: Any) -> GcsTokens:
        def open_(direct: bool) -> Transport:
            proxy = "" if direct else settings.get("proxy")
            known = {"connect_timeout": 5.0, "read_timeout": 5.0, **settings, "proxy": proxy}
            return open_transport(HttpSettings(**known), prefer=request.param)

        if isinstance(identity, Identity):
            source: Any = GcloudSource(lambda: identity.load(environ or {}), open_, clock)
        else:
            source = ObjectSource(identity, SCOPE, open_)
        made.append(GcsTokens(source, clock, patience=10.0))
        return made[-1]

    yield tokens
    for found in made:
        await found.aclose()


def data(content: dict[str, Any], **more: Any) -> Identity:
    """Return an identity of the content of a file."""
    return Identity("data", SCOPE, data=content, **more)


def header(tokens: GcsTokens) -> str:
    """Return what a request would carry."""
    headers: dict[str, str] = {}
    tokens.authorize(headers)
    return headers["authorization"]


def claims(request: Request) -> dict[str, Any]:
    """Return what a service account said of itself, once its signature is checked."""
    public = private_key().public_key()
    found: dict[str, Any] = jwt.decode(
        request.fields["assertion"],
        public,
        algorithms=["RS256"],
        audience=None,
        options={"verify_aud": False, "verify_exp": False, "verify_iat": False},
    )
    return found


async def failure(tokens: GcsTokens) -> TokenError:
    """Return why there is no token; nothing in it is a secret."""
    with pytest.raises(TokenError) as caught:
        await tokens.renew()
    error = caught.value
    shown = f"{error.detail} {error!r} {error.__cause__!r} {error.__context__!r} {tokens!r}"
    for secret in (*SECRETS, *pem().splitlines()[1:-1]):
        assert secret not in shown
    return error


# --- every kind of account -------------------------------------------------------------------


async def test_a_service_account_signs_for_a_token(server: IdentityServer, make: Make) -> None:
    """With its key, for the scope of the store; the answer lasts as long as it says."""
    url = server.url("/token")
    tokens = make(data(service_account(url)))
    await tokens.renew()

    assert header(tokens) == "Bearer ya29.1"
    assert tokens.renew_at == 1_800_000_000.0 + 3300
    said = claims(server.requests[0])
    assert (said["iss"], said["scope"], said["aud"]) == (
        "sa@project.iam.gserviceaccount.com",
        SCOPE,
        url,
    )
    grant = server.requests[0].fields["grant_type"]
    assert grant == "urn:ietf:params:oauth:grant-type:jwt-bearer"


async def test_a_user_gives_a_refresh_token(server: IdentityServer, make: Make) -> None:
    """As gcloud keeps it."""
    tokens = make(data(authorized_user(server.url("/token"))))
    await tokens.renew()

    assert header(tokens) == "Bearer ya29.1"
    assert server.requests[0].fields == {
        "grant_type": "refresh_token",
        "client_id": "client",
        "client_secret": "hunter2",
        "refresh_token": "refresh-hunter3",
    }


async def test_a_machine_asks_its_metadata_server(server: IdentityServer, make: Make) -> None:
    """With the header that no web page can send, and past any proxy."""
    host = f"127.0.0.1:{server.port}"
    tokens = make(
        Identity("machine", SCOPE), {"GCE_METADATA_HOST": host}, proxy="http://127.0.0.1:1"
    )
    await tokens.renew()

    assert header(tokens) == "Bearer ya29.1"
    asked = server.requests[0]
    assert (asked.verb, asked.target) == ("GET", METADATA.partition("?")[0])
    assert asked.headers["metadata-flavor"] == "Google"


async def test_a_file_is_read_when_a_token_is_needed(
    server: IdentityServer, make: Make, tmp_path: Path
) -> None:
    """Not before; it may be written in between."""
    path = tmp_path / "key.json"
    tokens = make(Identity("file", SCOPE, str(path)))
    assert not (await failure(tokens)).again
    path.write_text(json.dumps(authorized_user(server.url("/token"))))
    await tokens.renew()

    assert header(tokens) == "Bearer ya29.1"


async def test_one_account_acts_as_another(server: IdentityServer, make: Make) -> None:
    """Its own token asks for the other's, through whoever stands between."""
    impersonated = {
        "type": "impersonated_service_account",
        "service_account_impersonation_url": server.url("/v1/a@p:generateAccessToken"),
        "source_credentials": service_account(server.url("/token")),
        "delegates": ["b@p"],
    }
    tokens = make(data(impersonated))
    await tokens.renew()

    assert header(tokens) == "Bearer ya29.2"
    own, other = server.requests
    assert claims(own)["scope"] == CLOUD
    assert other.headers["authorization"] == "Bearer ya29.1"
    assert (other.fields["scope"], other.fields["delegates"]) == ([CLOUD], ["b@p"])


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("kind", ["file", "url"])
async def test_another_provider_vouches(
    server: IdentityServer, make: Make, tmp_path: Path, kind: str, form: str
) -> None:
    """The token of a pod is exchanged for one of Google's; a file is read anew each time."""
    subject = {"text": "subject-1\n", "json": {"jwt": "subject-1"}}[form]
    text = subject if isinstance(subject, str) else json.dumps(subject)
    path = tmp_path / "subject"
    path.write_text(text)
    server.reply = lambda asked: (200, text) if asked.target == "/subject" else None
    source: dict[str, Any] = {"file": str(path)}
    if kind == "url":
        source = {"url": server.url("/subject"), "headers": {"X": "y"}}
    if form == "json":
        source["format"] = {"type": "json", "subject_token_field_name": "jwt"}
    federated = {
        "type": "external_account",
        "audience": "audience",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": server.url("/sts"),
        "credential_source": source,
    }
    tokens = make(data(federated))
    await tokens.renew()

    fields = server.requests[-1].fields
    assert (fields["subject_token"], fields["scope"]) == ("subject-1", SCOPE)
    assert header(tokens).startswith("Bearer ya29.")


async def test_a_subject_that_is_gone_is_named(
    server: IdentityServer, make: Make, tmp_path: Path
) -> None:
    """By the path that the pod has it at."""
    federated = {
        "type": "external_account",
        "audience": "audience",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": server.url("/sts"),
        "credential_source": {"file": str(tmp_path / "none")},
    }
    error = await failure(make(data(federated)))

    assert error.detail.endswith(f"No such file or directory: {tmp_path / 'none'}")
    assert not error.again


async def test_a_token_that_was_given_is_used_as_it_is(make: Make) -> None:
    """Nobody knows its end, so it is not renewed; refused, it is no more use."""
    tokens = make(Identity("text", SCOPE, "ya29.given"))
    await tokens.renew()

    assert header(tokens) == "Bearer ya29.given"
    assert tokens.renew_at == float("inf")
    assert not await tokens.refused({"authorization": "Bearer ya29.given"})
    assert tokens.hide("ya29.given") == "***"


# --- when ------------------------------------------------------------------------------------


async def test_one_renewal_serves_all(server: IdentityServer, make: Make, clock: Clock) -> None:
    """At the start, ahead of the end, and when the service refuses the token."""
    tokens = make(data(authorized_user(server.url("/token"))))
    await asyncio.gather(*(tokens.renew() for _ in range(20)))
    assert header(tokens) == "Bearer ya29.1"
    clock.now += 3400
    assert tokens.renew_at <= clock.now
    await asyncio.gather(*(tokens.renew() for _ in range(20)))
    assert header(tokens) == "Bearer ya29.2"
    sent = {"authorization": header(tokens)}
    assert await asyncio.gather(*(tokens.refused(sent) for _ in range(20))) == [True] * 20

    assert header(tokens) == "Bearer ya29.3"
    assert len(server.requests) == 3


async def test_the_end_counts_from_the_question(
    server: IdentityServer, make: Make, clock: Clock
) -> None:
    """The answer may have been long under way."""

    def late(request: Request) -> Reply | None:
        clock.now += 100
        return None

    server.reply = late
    tokens = make(data(authorized_user(server.url("/token"))))
    await tokens.renew()

    assert tokens.renew_at == 1_800_000_000.0 + 3300


# --- what goes wrong -------------------------------------------------------------------------


@pytest.mark.sample(7)
@pytest.mark.parametrize(
    "reply, again, message",
    [
        (
            (400, {"error": "invalid_grant", "error_description": "Invalid JWT\n Signature."}),
            False,
            "400: invalid_grant: Invalid JWT Signature.; is its key deleted or disabled",
        ),
        ((401, {"error": "invalid_client"}), False, "401: invalid_client; is its key"),
        ((403, {"error": {"message": "no", "status": "DENIED"}}), False, "403: DENIED: no; is"),
        ((429, {"error": "slow_down"}), True, "answered 429: slow_down"),
        ((500, "<html>"), True, "answered 500"),
        ((503, "come back\nlater"), True, "503: come back later"),
        ((302, "elsewhere"), False, "answered 302: elsewhere"),
        ((200, "no JSON"), False, "answered 200: it is not JSON"),
        ((200, {"expires_in": 5}), False, "the response has no token"),
        ((200, {"access_token": "x" * 70_000, "expires_in": 5}), False, "larger than 65536 bytes"),
    ],
)
async def test_an_answer_that_gives_no_token_is_told(
    server: IdentityServer, make: Make, reply: Reply, again: bool, message: str
) -> None:
    """Who says no for good, who only for now, and what to look at; and it is asked once."""
    server.reply = lambda request: reply
    error = await failure(make(data(service_account(server.url("/token")))))

    assert message in error.detail
    assert error.again is again
    assert error.detail.startswith("no access token from token: ")
    assert len(server.requests) == 1


async def test_a_user_is_told_to_log_in_again(server: IdentityServer, make: Make) -> None:
    """A refresh token ends some day."""
    server.reply = lambda request: (400, {"error": "invalid_grant"})
    error = await failure(make(data(authorized_user(server.url("/token")))))

    assert "run gcloud auth application-default login again" in error.detail


async def test_a_secret_that_is_repeated_is_hidden(server: IdentityServer, make: Make) -> None:
    """Whoever answers may quote what it was asked."""
    server.reply = lambda request: (400, f"bad {request.fields['refresh_token']}")
    error = await failure(make(data(authorized_user(server.url("/token")))))

    assert "400: bad ***" in error.detail


async def test_a_machine_without_an_account_is_told(server: IdentityServer, make: Make) -> None:
    """The metadata server is there, and knows none."""
    server.reply = lambda request: (404, "not found")
    host = f"127.0.0.1:{server.port}"
    error = await failure(make(Identity("machine", SCOPE), {"GCE_METADATA_HOST": host}))

    assert "404: not found; does this machine have a service account?" in error.detail
    assert not error.again


async def test_who_is_no_metadata_server_is_not_believed(make: Make) -> None:
    """A network may answer for any name."""
    body = b'{"access_token": "ya29.false", "expires_in": 3600}'
    reply = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)

    async def script(seen: object, writer: asyncio.StreamWriter) -> None:
        writer.write(reply)

    async with RawServer(script) as server:
        host = f"127.0.0.1:{server.port}"
        error = await failure(make(Identity("machine", SCOPE), {"GCE_METADATA_HOST": host}))
    assert "the server is not a metadata server" in error.detail


async def test_no_metadata_server_is_no_credentials(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Unless one was asked for by name: then it may come."""
    monkeypatch.setattr(gcs_identity, "_PRODUCT", "/none")
    monkeypatch.setattr(gcs_identity, "_METADATA", "127.0.0.1:1")
    environ = {"HOME": str(tmp_path)}
    last = await failure(make(Identity("default", SCOPE), environ))
    named = await failure(make(Identity("machine", SCOPE), environ))

    assert last.detail.startswith("no credentials: run gcloud auth")
    assert not last.again
    assert "cannot connect" in named.detail or "connect" in named.detail
    assert named.again


@pytest.mark.parametrize("script", [silent, drip])
async def test_a_server_that_never_ends_is_given_up(make: Make, script: Any) -> None:
    """It may answer another time."""
    async with RawServer(script) as server:
        url = server.url("/token")
        settings = {"read_timeout": 0.2, "total_timeout": 0.5}
        error = await failure(make(data(authorized_user(url)), **settings))
    assert error.again or "larger than" in error.detail


async def test_nobody_at_the_other_end_may_pass(make: Make) -> None:
    """As whatever lies in the network."""
    error = await failure(make(data(authorized_user("http://127.0.0.1:1/token"))))

    assert error.again


async def test_a_certificate_that_is_not_trusted_is_no_server(make: Make, tmp_path: Path) -> None:
    """No secret is sent there; with its authority in ca_file it is one."""
    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    async with IdentityServer(tls=tls) as server:
        user = data(authorized_user(server.url("/token")))
        error = await failure(make(user))
        assert not error.again
        assert "certificate" in error.detail
        assert server.requests == []
        tokens = make(user, ca_file=str(tmp_path / "ca.pem"))
        await tokens.renew()

        assert header(tokens) == "Bearer ya29.1"


async def test_tokens_are_asked_through_the_proxy(make: Make) -> None:
    """The one of the store, for all but the metadata server."""
    async with Proxy(refusal=b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n") as proxy:
        user = data(authorized_user("https://oauth2.googleapis.com/token"))
        error = await failure(make(user, proxy=f"http://127.0.0.1:{proxy.port}"))
        assert proxy.seen[0].line.startswith(b"CONNECT oauth2.googleapis.com:443")
    assert "oauth2.googleapis.com" in error.detail


async def test_a_missing_library_is_an_error_and_no_crash(
    server: IdentityServer, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it is that cannot be imported."""
    monkeypatch.setitem(__import__("sys").modules, "gcloud.aio.auth", None)
    error = await failure(make(data(authorized_user(server.url("/token")))))

    assert not error.again


# --- objects of google-auth ------------------------------------------------------------------


def given_user(server: IdentityServer, **more: Any) -> users.Credentials:
    """Return a user's credentials object."""
    found: users.Credentials = users.Credentials(  # type: ignore[no-untyped-call]
        None,
        refresh_token="refresh-hunter3",
        client_id="client",
        client_secret="hunter2",
        token_uri=server.url("/token"),
    )
    return found


async def test_an_object_of_google_auth_asks_through_the_loop(
    server: IdentityServer, make: Make, clock: Clock
) -> None:
    """From a thread, by the transport of the store."""
    given = given_user(server)
    tokens = make(given)
    await asyncio.gather(*(tokens.renew() for _ in range(5)))

    assert header(tokens) == "Bearer ya29.1"
    assert server.requests[0].fields["refresh_token"] == "refresh-hunter3"
    assert "asynccommit" in server.requests[0].headers["user-agent"]
    assert given.expiry is not None
    left = given.expiry.replace(tzinfo=UTC).timestamp() - clock.now
    assert tokens.renew_at == clock.now + max(left - 300, left / 2, 1.0)


async def test_a_service_account_object_is_given_a_scope(
    server: IdentityServer, make: Make
) -> None:
    """If it has none yet."""
    given = services.Credentials.from_service_account_info(  # type: ignore[no-untyped-call]
        service_account(server.url("/token"))
    )
    tokens = make(given)
    await tokens.renew()

    assert header(tokens) == "Bearer ya29.1"
    assert claims(server.requests[0])["scope"] == SCOPE


async def test_a_good_token_of_an_object_is_not_asked_for_again(
    server: IdentityServer, make: Make
) -> None:
    """It may have been renewed elsewhere; only once it is refused is a new one asked for."""
    given = given_user(server)
    first, second = make(given), make(given)
    await first.renew()
    await second.renew()
    assert header(first) == header(second) == "Bearer ya29.1"
    assert len(server.requests) == 1
    assert await first.refused({"authorization": "Bearer ya29.1"})
    assert await second.refused({"authorization": "Bearer ya29.1"})

    assert header(first) == "Bearer ya29.2"
    assert len(server.requests) >= 2


class Loose:
    """An object that is like those of google-auth, and gives what it is told."""

    requires_scopes = False
    token: str | None = None
    expiry: datetime | None = None
    valid = False

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.threads: list[threading.Thread] = []

    def refresh(self, request: object) -> None:
        """Get a token without end."""
        self.threads.append(threading.current_thread())
        if self.error is not None:
            raise self.error
        self.token = f"ya29.{len(self.threads)}"
        self.valid = True


async def test_an_object_blocks_its_own_thread(make: Make) -> None:
    """Never the loop; a token without end is kept."""
    given = Loose()
    tokens = make(given)
    await tokens.renew()

    assert header(tokens) == "Bearer ya29.1"
    assert tokens.renew_at == float("inf")
    assert given.threads != [threading.current_thread()]


@pytest.mark.parametrize(
    "error, again, message",
    [
        (RefreshError("invalid_grant: no"), False, "no access token from Loose: invalid_grant: no"),  # type: ignore[no-untyped-call]
        (RefreshError("busy", retryable=True), True, "busy"),  # type: ignore[no-untyped-call]
        (ValueError("of the key: hunter2"), False, "ValueError; are the credentials complete"),
        (TimeoutError(), True, "no response in time"),
    ],
)
async def test_an_object_that_gives_none_says_why(
    make: Make, error: Exception, again: bool, message: str
) -> None:
    """google-auth tells what may pass; of what others say nothing is repeated."""
    tokens = make(Loose(error))

    with pytest.raises(TokenError, match=message) as caught:
        await tokens.renew()
    assert caught.value.again is again
    assert "hunter2" not in caught.value.detail


async def test_an_object_without_a_token_gives_none(make: Make) -> None:
    """Even if it says that all is well."""
    given = Loose()
    given.valid = True
    error = await failure(make(given))

    assert "are the credentials complete" in error.detail


async def test_an_object_whose_server_is_gone_may_give_one_later(
    server: IdentityServer, make: Make
) -> None:
    """google-auth is told by an error that it knows."""
    given = given_user(server)
    await server.__aexit__()
    error = await failure(make(given))

    assert error.again
    await server.__aenter__()


async def test_secrets_of_an_object_are_hidden(server: IdentityServer, make: Make) -> None:
    """What it has of them at the time."""
    tokens = make(given_user(server))
    await tokens.renew()

    assert tokens.hide("hunter2 refresh-hunter3 ya29.1") == "*** *** ***"
    assert repr(tokens) == "GcsTokens()"
