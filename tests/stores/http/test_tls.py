"""Requests over TLS and through proxies: whom is trusted, and who is asked on the way."""

from __future__ import annotations

import asyncio
import base64
import datetime
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trustme

from asynccommit.errors import OptionError
from asynccommit.stores.http.base import (
    HttpSettings,
    NoAnswerError,
    NotSentError,
    Proxies,
    Transport,
    UntrustedError,
)
from asynccommit.stores.http.client import TRANSPORTS, open_transport
from asynccommit.stores.http.with_aiohttp import tls_context
from tests.support.servers import Proxy, RawServer, answer, says

LIMIT = 1 << 20
SECRET = "http://user:p%40ss@127.0.0.1"


@pytest.fixture(params=list(TRANSPORTS))
def library(request: pytest.FixtureRequest) -> str:
    """Name each library."""
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Give an authority that no system trusts."""
    return trustme.CA()


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> str:
    """Give a file with the authority's certificate, and another one before it."""
    path = tmp_path / "ca.pem"
    path.write_bytes(trustme.CA().cert_pem.bytes() + authority.cert_pem.bytes())
    return str(path)


@pytest.fixture
async def transport(library: str, ca_file: str) -> AsyncIterator[Transport]:
    """Give a transport that trusts the authority."""
    opened = open_transport(HttpSettings(proxy="", ca_file=ca_file), prefer=library)
    yield opened
    await opened.aclose()


@pytest.fixture
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Clear what the environment says of proxies."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return monkeypatch


def server_tls(
    authority: trustme.CA, *names: str, expired: bool = False, newest: bool = True
) -> ssl.SSLContext:
    """Return the context of a server with a certificate for ``names``."""
    past = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(
        *(names or ("127.0.0.1", "localhost")), not_after=past if expired else None
    ).configure_cert(context)
    if not newest:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


# --- TLS -------------------------------------------------------------------------------------


@pytest.mark.parametrize("newest", [True, False])
async def test_a_server_of_a_trusted_authority_is_talked_to(
    transport: Transport, authority: trustme.CA, newest: bool
) -> None:
    """A certificate of the file's authority is enough, and the connection is used again."""
    tls = server_tls(authority, newest=newest)
    async with RawServer(says(answer("201 Made", b"x" * 100_000)), tls=tls) as server:
        for _ in range(3):
            got = await transport.send("PUT", server.url("/a%2Fb?c"), {}, b"y" * 99, limit=LIMIT)
            assert (got.status, len(got.body)) == (201, 100_000)
    assert server.connections == 1
    assert server.seen[0].line == b"PUT /a%2Fb?c HTTP/1.1"
    assert server.seen[0].body == b"y" * 99


async def test_an_unknown_authority_is_not_trusted(library: str, authority: trustme.CA) -> None:
    """Without the file nothing is sent, and asking again is of no use."""
    transport = open_transport(HttpSettings(proxy=""), prefer=library)
    async with RawServer(says(answer()), tls=server_tls(authority)) as server:
        with pytest.raises(UntrustedError, match="certificate") as caught:
            await transport.send("PUT", server.url("/p?sig=secret"), {}, limit=LIMIT)
    await transport.aclose()
    assert "secret" not in str(caught.value)
    assert server.seen == []


@pytest.mark.parametrize("kind", ["other name", "expired", "self-signed"])
async def test_a_certificate_that_does_not_fit_is_not_trusted(
    transport: Transport, authority: trustme.CA, kind: str
) -> None:
    """Name, time and issuer must be right."""
    tls = {
        "other name": server_tls(authority, "other.example"),
        "expired": server_tls(authority, expired=True),
        "self-signed": server_tls(trustme.CA()),
    }[kind]
    async with RawServer(says(answer()), tls=tls) as server:
        with pytest.raises(UntrustedError):
            await transport.send("PUT", server.url("/p"), {}, limit=LIMIT)
    assert server.seen == []


async def test_a_server_without_tls_is_not_connected(transport: Transport) -> None:
    """What does not speak TLS gets nothing."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer("400 Bad Request"))
        writer.close()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    async with server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/p"
        with pytest.raises(NotSentError) as caught:
            await transport.send("PUT", url, {}, limit=LIMIT)
    assert type(caught.value) is NotSentError


async def test_a_cut_over_tls_is_no_answer(transport: Transport, authority: trustme.CA) -> None:
    """A request over TLS that is cut may have been done."""
    async with RawServer(says(b"", close=True), tls=server_tls(authority)) as server:
        with pytest.raises(NoAnswerError):
            await transport.send("PUT", server.url("/p"), {}, limit=LIMIT)
    assert len(server.seen) == 1


@pytest.mark.parametrize("content", [None, b"", b"no certificate"])
def test_a_ca_file_that_cannot_be_read_is_a_wrong_option(
    library: str, tmp_path: Path, content: bytes | None
) -> None:
    """A missing, an empty and an odd file are named."""
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(OptionError, match=r"ca\.pem"):
        open_transport(HttpSettings(ca_file=str(path)), prefer=library)


async def test_a_ca_file_is_trusted_by_one_transport(
    transport: Transport, library: str, authority: trustme.CA
) -> None:
    """Transports share the certificates of the system, and no others."""
    async with RawServer(says(answer()), tls=server_tls(authority)) as server:
        assert (await transport.send("GET", server.url("/p"), {}, limit=LIMIT)).status == 200
        other = open_transport(HttpSettings(proxy=""), prefer=library)
        with pytest.raises(UntrustedError):
            await other.send("GET", server.url("/p"), {}, limit=LIMIT)
        await other.aclose()
    assert tls_context(None) is tls_context(None)


# --- proxies ---------------------------------------------------------------------------------


async def test_a_proxy_gets_the_url_byte_for_byte(library: str) -> None:
    """Plain requests go to the proxy as they are, with its password and without a tunnel."""
    url = "http://store.example:8080/a%2Fb%20c?x=%2B+y"
    async with Proxy() as proxy:
        settings = HttpSettings(proxy=f"{SECRET}:{proxy.port}")
        transport = open_transport(settings, prefer=library)
        assert (await transport.send("PUT", url, {}, b"body", limit=LIMIT)).status == 200
        await transport.aclose()
    seen = proxy.seen[0]
    assert (seen.line, seen.body) == (f"PUT {url} HTTP/1.1".encode(), b"body")
    token = base64.b64encode(b"user:p@ss")
    assert seen.header(b"proxy-authorization") == [b"Basic " + token]


async def test_tls_goes_through_a_tunnel(library: str, ca_file: str, authority: trustme.CA) -> None:
    """A proxy that makes a tunnel sees the host and nothing else."""
    tls = server_tls(authority, "store.example")
    async with RawServer(says(answer("201 Made")), tls=tls) as server, Proxy(server.port) as proxy:
        settings = HttpSettings(proxy=f"{SECRET}:{proxy.port}", ca_file=ca_file)
        transport = open_transport(settings, prefer=library)
        for _ in range(2):
            got = await transport.send("PUT", "https://store.example/p?q", {}, limit=LIMIT)
            assert got.status == 201
        await transport.aclose()
    assert [seen.line for seen in proxy.seen] == [b"CONNECT store.example:443 HTTP/1.1"]
    assert proxy.seen[0].header(b"proxy-authorization") != []
    assert [seen.line for seen in server.seen] == [b"PUT /p?q HTTP/1.1"] * 2
    assert server.seen[0].header(b"proxy-authorization") == []


@pytest.mark.parametrize("status", ["407 Proxy Authentication Required", "502 Bad Gateway"])
async def test_a_proxy_that_refuses_a_tunnel_has_sent_nothing(library: str, status: str) -> None:
    """The error has neither the password nor the query."""
    async with Proxy(refusal=answer(status, b"secret")) as proxy:
        transport = open_transport(HttpSettings(proxy=f"{SECRET}:{proxy.port}"), prefer=library)
        with pytest.raises(NotSentError) as caught:
            await transport.send("PUT", "https://store.example/p?sig=secret", {}, limit=LIMIT)
        await transport.aclose()
    assert "p@ss" not in repr(caught.value)
    assert "p%40ss" not in repr(caught.value)
    assert "secret" not in repr(caught.value)
    assert caught.value.__context__ is None


async def test_a_proxy_that_is_not_there_has_sent_nothing(library: str) -> None:
    """The error of a plain request has neither the password nor the query."""
    transport = open_transport(HttpSettings(proxy=f"{SECRET}:1"), prefer=library)
    for scheme in ("http", "https"):
        with pytest.raises(NotSentError, match="cannot connect") as caught:
            await transport.send("PUT", f"{scheme}://s.example/p?sig=secret", {}, limit=LIMIT)
        assert "ss" not in repr(caught.value).partition("cannot")[2]
    await transport.aclose()


async def test_the_environment_names_proxies(library: str, no_proxies: pytest.MonkeyPatch) -> None:
    """``HTTP_PROXY`` is used, and not for hosts of ``NO_PROXY``, and a setting goes before it."""
    async with Proxy() as proxy, RawServer(says(answer("201 Made"))) as server:
        no_proxies.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        no_proxies.setenv("NO_PROXY", "localhost,127.0.0.1")
        transport = open_transport(HttpSettings(), prefer=library)
        direct = open_transport(HttpSettings(proxy=""), prefer=library)
        url = server.url("/p")
        assert (await transport.send("GET", "http://s.example/", {}, limit=LIMIT)).status == 200
        assert (await transport.send("GET", url, {}, limit=LIMIT)).status == 201
        no_proxies.setenv("NO_PROXY", "")
        assert (await direct.send("GET", url, {}, limit=LIMIT)).status == 201
        await asyncio.gather(transport.aclose(), direct.aclose())
    assert len(proxy.seen) == 1
    assert len(server.seen) == 2


@pytest.mark.parametrize(
    "no_proxy, url, proxied",
    [
        ("", "http://127.0.0.1:10000/p", True),
        ("127.0.0.1", "http://127.0.0.1:10000/p", False),
        ("127.0.0.0/8", "http://127.0.0.1:10000/p", False),
        ("127.0.0.1:10000", "http://127.0.0.1:10000/p", False),
        ("127.0.0.1:10001", "http://127.0.0.1:10000/p", True),
        ("::1", "http://[::1]:10000/p", False),
        ("localhost", "http://localhost/p", False),
        ("windows.net", "https://a.dfs.core.windows.net/p", False),
        (".windows.net", "https://a.dfs.core.windows.net/p", False),
        ("indows.net", "https://a.dfs.core.windows.net/p", True),
        ("a.example, , B.example", "https://b.example/p", False),
        ("*", "https://b.example/p", False),
        (".", "https://b.example/p", True),
    ],
)
def test_no_proxy_names_hosts_domains_and_networks(
    no_proxies: pytest.MonkeyPatch, no_proxy: str, url: str, proxied: bool
) -> None:
    """What is excepted is asked directly."""
    no_proxies.setenv("http_proxy", "http://one:1")
    no_proxies.setenv("HTTPS_PROXY", "http://two:2")
    no_proxies.setenv("NO_PROXY", no_proxy)
    expected = ("http://two:2" if url.startswith("https") else "http://one:1") if proxied else None
    proxies = Proxies(None)
    assert [proxies(url), proxies(url)] == [expected, expected]


def test_a_proxy_of_another_kind_is_a_wrong_option(
    library: str, no_proxies: pytest.MonkeyPatch
) -> None:
    """The error has no password, whether set or found in the environment."""
    with pytest.raises(OptionError, match="http://host:port") as caught:
        open_transport(HttpSettings(proxy="socks5://user:secret@host"), prefer=library)
    assert "secret" not in str(caught.value)
    no_proxies.setenv("ALL_PROXY", "socks5://user:secret@host")
    with pytest.raises(OptionError, match="http://host:port"):
        open_transport(HttpSettings(), prefer=library)


# --- processes -------------------------------------------------------------------------------


def test_a_forked_process_uses_another_library() -> None:
    """The thread of pyreqwest is not there after a fork; a new transport is one of aiohttp."""
    code = (
        "import os, sys\n"
        "from asynccommit.stores.http.base import HttpSettings\n"
        "from asynccommit.stores.http.client import open_transport\n"
        "before = repr(open_transport(HttpSettings()))\n"
        "pid = os.fork()\n"
        "if pid:\n"
        "    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
        "after = repr(open_transport(HttpSettings()))\n"
        "os._exit(before[:9] != 'Pyreqwest' or after[:7] != 'Aiohttp')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)
