"""One request over HTTP: what is sent arrives as it is, and what is answered is returned."""

from __future__ import annotations

import asyncio
import gzip
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import OptionError, UnsupportedError
from asynccommit.stores.http import base
from asynccommit.stores.http.base import HttpSettings, Transport, is_loopback
from asynccommit.stores.http.client import TRANSPORTS, open_transport
from tests.support.servers import RawServer, Seen, answer, says

LIMIT = 1 << 20


@pytest.fixture(params=list(TRANSPORTS))
async def transport(request: pytest.FixtureRequest) -> AsyncIterator[Transport]:
    """Give a transport of each library."""
    opened = open_transport(HttpSettings(proxy=""), prefer=request.param)
    yield opened
    await opened.aclose()


# --- what is sent ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/acct/fs/a%2Fb%20c%25d+e%3A:f%5C",
        "/fs/x=%E2%82%AC/%f0%9f%90%8d%2e%2E%2F/%25252F",
        "/fs//a//",
        "/fs/~!$&'()*+,;=:@-._",
        "/fs/%",
        "/fs/.hidden/..a/...",
        "/fs/p?mode=legacy&continuation=%2B%2f+/?:@%27,;=&empty",
        "/fs?sig=a%2Bb%3D%3D&",
    ],
)
async def test_a_url_arrives_byte_for_byte(transport: Transport, path: str) -> None:
    """The path and the query of the request line are those of the URL."""
    async with RawServer(says(answer())) as server:
        await transport.send("PUT", server.url(path), {}, limit=LIMIT)
    assert server.seen[0].line == f"PUT {path} HTTP/1.1".encode()


@pytest.mark.parametrize(
    "path",
    ["/a b", "/a\tb", "/a\r\nx: y", "/é", "/a#f", "/a/../b", "/a/.", "/a/%2e%2E/b", "/./b?c",
     "/a|b", "/a\\b", "/{a}", '/a"b', "/a?b'c", "/a?b|c", "/a?b#c", "", "?a", "/a?"],
)  # fmt: skip
async def test_a_url_that_would_be_changed_is_refused(transport: Transport, path: str) -> None:
    """What a library would quote, resolve or cut off is an error, and nothing is sent."""
    async with RawServer(says(answer())) as server:
        with pytest.raises(ValueError, match="unchanged"):
            await transport.send("PUT", server.url(path), {}, limit=LIMIT)
    assert server.seen == []


@given(st.text(max_size=40))
def test_a_refused_url_is_named_without_its_query(text: str) -> None:
    """The error of a URL has neither its query nor its user."""
    with pytest.raises(ValueError, match="unchanged") as caught:
        base.check_url(f"http://user:secret@host/ {text.replace('?', '')}?sig=secret")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("method", ["PUT", "POST", "PATCH", "DELETE", "GET", "HEAD"])
async def test_nothing_is_added_to_a_request(transport: Transport, method: str) -> None:
    """Beside what is given there is host, length, user agent and what is accepted."""
    async with RawServer(says(answer())) as server:
        headers = {"x-ms-version": "2023-11-03", "If-None-Match": "*"}
        await transport.send(method, server.url("/p"), headers, limit=LIMIT)
    sent = {name.lower(): value for name, value in server.seen[0].headers}
    length = {} if method in ("GET", "HEAD") else {b"content-length": b"0"}
    assert sent == length | {
        b"host": server.url()[7:-1].encode(),
        b"user-agent": HttpSettings().user_agent.encode(),
        b"accept": b"*/*",
        b"accept-encoding": b"identity",
        b"x-ms-version": b"2023-11-03",
        b"if-none-match": b"*",
    }
    assert len(sent) == len(server.seen[0].headers)


async def test_given_headers_replace_the_usual_ones(transport: Transport) -> None:
    """A header of the caller stands alone, whatever the case of its name."""
    async with RawServer(says(answer())) as server:
        headers = {"user-agent": "mine", "ACCEPT": "application/json", "Content-Type": "a/b"}
        await transport.send("PUT", server.url(), headers, b"x", limit=LIMIT)
    seen = server.seen[0]
    assert seen.header(b"user-agent") == [b"mine"]
    assert seen.header(b"accept") == [b"application/json"]
    assert seen.header(b"content-type") == [b"a/b"]


async def test_header_values_arrive_as_they_are(transport: Transport) -> None:
    """Signatures, quotes, percent signs and inner spaces are not touched; text is UTF-8."""
    values = {
        "authorization": 'SharedKey a:b+/c==, "d"',
        "x-ms-rename-source": "/fs/a%2Fb%20c%25?sig=%2B",
        "x-ms-properties": "k=djE=,l=  djI=;",
        "x-text": "é€",
        "x-empty": "",
    }
    async with RawServer(says(answer())) as server:
        await transport.send("PUT", server.url(), values, limit=LIMIT)
    for name, value in values.items():
        assert server.seen[0].header(name.encode()) == [value.encode()]


@pytest.mark.parametrize("value", ["secret\r\nx: y", "secret\ny", "secret\0", "secret\r"])
async def test_a_header_with_control_characters_is_refused(
    transport: Transport, value: str
) -> None:
    """No header can begin another one, and the error does not have its value."""
    async with RawServer(says(answer())) as server:
        with pytest.raises(ValueError, match="PUT") as caught:
            await transport.send("PUT", server.url("/p?sig=secret"), {"x-a": value}, limit=LIMIT)
        await transport.send("PUT", server.url(), {}, limit=LIMIT)
    assert "secret" not in f"{caught.value!r} {caught.value.__context__!r}"
    assert [seen.line for seen in server.seen] == [b"PUT / HTTP/1.1"]


@pytest.mark.parametrize("size", [0, 1, 65_536, 5_000_000])
async def test_a_body_arrives_as_it_is(transport: Transport, size: int) -> None:
    """All bytes of a body arrive, with their number in front."""
    body = bytes(range(256)) * (size // 256) + b"\0" * (size % 256)
    async with RawServer(says(answer())) as server:
        await transport.send("PATCH", server.url(), {}, body, limit=LIMIT)
    assert server.seen[0].body == body
    assert server.seen[0].header(b"content-length") == [str(size).encode()]


async def test_no_cookie_is_sent_back(transport: Transport) -> None:
    """What a server sets is in its answer, and not in the next request."""
    async with RawServer(says(answer(headers=["Set-Cookie: a=b; Path=/"]))) as server:
        first = await transport.send("GET", server.url(), {}, limit=LIMIT)
        await transport.send("GET", server.url(), {}, limit=LIMIT)
    assert first.headers["set-cookie"] == "a=b; Path=/"
    assert server.seen[1].header(b"cookie") == []


# --- what is answered ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "status", [200, 201, 202, 206, 304, 400, 401, 404, 409, 412, 416, 429, 500, 503, 599]
)
async def test_every_status_is_an_answer(transport: Transport, status: int) -> None:
    """Status, headers by lower-case name and body come back, whatever the status is."""
    body = b"" if status == 304 else b'{"error": {}}'
    headers = ["X-Ms-Error-Code: Some", 'ETag: "0x8D"', "X-A: first", "x-a: second"]
    async with RawServer(says(answer(f"{status} Reason", body, headers))) as server:
        got = await transport.send("GET", server.url(), {}, limit=LIMIT)
    assert (got.status, got.body) == (status, body)
    assert got.headers == {
        "x-ms-error-code": "Some",
        "etag": '"0x8D"',
        "x-a": "first",
        "content-length": str(len(body)),
    }


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_redirect_is_followed(transport: Transport, status: int) -> None:
    """A redirect is returned like any other answer."""
    async with RawServer(says(answer(f"{status} Moved", b"", ["Location: /other"]))) as server:
        got = await transport.send("PUT", server.url("/p"), {}, limit=LIMIT)
    assert (got.status, got.headers["location"]) == (status, "/other")
    assert len(server.seen) == 1


async def test_a_body_is_not_decoded(transport: Transport) -> None:
    """A server that compresses unasked is taken at its bytes."""
    packed = gzip.compress(b"x" * 1000)
    async with RawServer(says(answer("200 OK", packed, ["Content-Encoding: gzip"]))) as server:
        got = await transport.send("GET", server.url(), {}, limit=LIMIT)
    assert got.body == packed
    assert got.headers["content-encoding"] == "gzip"


async def test_the_answer_of_a_head_has_a_length_and_no_body(transport: Transport) -> None:
    """The length is the file's, even one above the limit, and the connection is used again."""
    async with RawServer(says(b"HTTP/1.1 200 OK\r\nContent-Length: 5000000000\r\n\r\n")) as server:
        for _ in range(2):
            got = await transport.send("HEAD", server.url(), {}, limit=10)
            assert (got.headers["content-length"], got.body) == ("5000000000", b"")
    assert server.connections == 1


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
async def test_an_answer_without_a_body_is_not_waited_for(
    transport: Transport, status: str
) -> None:
    """Such a status ends with its headers."""
    async with RawServer(says(answer(status, length=False))) as server:
        assert (await transport.send("GET", server.url(), {}, limit=LIMIT)).body == b""


async def test_an_answer_without_a_length_ends_with_the_connection(transport: Transport) -> None:
    """All bytes until the connection is closed are the body."""
    async with RawServer(says(answer(body=b"abc", length=False), close=True)) as server:
        assert (await transport.send("GET", server.url(), {}, limit=LIMIT)).body == b"abc"


async def test_a_chunked_answer_is_put_together(transport: Transport) -> None:
    """Chunks are joined and trailers left out."""
    chunks = b"3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nX-Trailer: 1\r\n\r\n"
    reply = answer(headers=["Transfer-Encoding: chunked"], length=False) + chunks
    async with RawServer(says(reply)) as server:
        for _ in range(2):
            got = await transport.send("GET", server.url(), {}, limit=7)
            assert got.body == b"abcdefg"
    assert server.connections == 1


async def test_an_interim_answer_is_passed_over(transport: Transport) -> None:
    """``100 Continue`` is not the answer."""
    async with RawServer(says(b"HTTP/1.1 100 Continue\r\n\r\n" + answer("201 Made"))) as server:
        assert (await transport.send("PUT", server.url(), {}, limit=LIMIT)).status == 201


async def test_an_odd_header_hides_no_other(transport: Transport) -> None:
    """A value that is not text does not make an answer unusable."""
    reply = b'HTTP/1.1 200 OK\r\nX-Odd: \xff\xfe\r\nETag: "e"\r\nContent-Length: 1\r\n\r\nx'
    async with RawServer(says(reply)) as server:
        got = await transport.send("GET", server.url(), {}, limit=LIMIT)
    assert (got.headers["etag"], got.body) == ('"e"', b"x")


# --- connections -----------------------------------------------------------------------------


async def test_a_connection_is_used_again(transport: Transport) -> None:
    """Requests one after another go over one connection."""
    async with RawServer(says(answer(body=b"x"))) as server:
        for _ in range(20):
            await transport.send("PUT", server.url(), {}, b"body", limit=LIMIT)
    assert server.connections == 1
    assert [seen.serial for seen in server.seen] == list(range(20))


@pytest.mark.parametrize("library", TRANSPORTS)
async def test_there_are_no_more_connections_than_set(library: str) -> None:
    """Requests beyond the number of connections wait for one."""
    transport = open_transport(HttpSettings(proxy="", connections=3), prefer=library)

    async def slowly(seen: Seen, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.005)
        writer.write(answer())

    async with RawServer(slowly) as server:
        sends = (transport.send("PUT", server.url(), {}, limit=LIMIT) for _ in range(20))
        await asyncio.gather(*sends)
        await transport.aclose()
    assert server.connections == 3


async def test_ipv6_is_spoken(transport: Transport) -> None:
    """An address in brackets is connected to, and named so."""
    async with RawServer(says(answer("201 Made")), host="::1") as server:
        got = await transport.send("PUT", server.url("/p"), {}, limit=LIMIT)
    assert got.status == 201
    assert server.seen[0].header(b"host") == [f"[::1]:{server.port}".encode()]


async def test_a_name_is_resolved(transport: Transport) -> None:
    """``localhost`` is found, also where the server listens on one kind of address only."""
    async with RawServer(says(answer("201 Made"))) as server:
        got = await transport.send("PUT", server.url("/p", host="localhost"), {}, limit=LIMIT)
    assert got.status == 201


# --- opening ---------------------------------------------------------------------------------


@pytest.mark.parametrize("library", TRANSPORTS)
async def test_a_transport_opens_outside_a_loop_and_closes_unused(library: str) -> None:
    """A store is made before its first request, maybe in another thread."""
    opened = await asyncio.to_thread(open_transport, HttpSettings(), prefer=library)
    await opened.aclose()
    await opened.aclose()


async def test_the_quickest_library_is_preferred() -> None:
    """Without a wish it is pyreqwest, where that is installed."""
    opened = open_transport(HttpSettings())
    assert repr(opened).startswith("PyreqwestTransport")
    await opened.aclose()


async def test_without_one_library_the_other_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not installed is passed over, unless it was asked for."""
    monkeypatch.delitem(sys.modules, "asynccommit.stores.http.with_pyreqwest", raising=False)
    monkeypatch.setitem(sys.modules, "pyreqwest", None)
    monkeypatch.setitem(sys.modules, "pyreqwest.client", None)
    opened = open_transport(HttpSettings())
    assert repr(opened).startswith("AiohttpTransport")
    await opened.aclose()
    with pytest.raises(UnsupportedError, match=r"pip install 'asynccommit\[fast\]'"):
        open_transport(HttpSettings(), prefer="pyreqwest")


def test_without_any_library_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The error has the command."""
    for library, name in TRANSPORTS.items():
        monkeypatch.delitem(sys.modules, name.rpartition(".")[0], raising=False)
        monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setitem(sys.modules, "pyreqwest.client", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'asynccommit\[adls\]'"):
        open_transport(HttpSettings())


def test_an_unknown_library_is_a_wrong_option() -> None:
    """The error names those that there are."""
    with pytest.raises(OptionError, match="aiohttp"):
        open_transport(HttpSettings(), prefer="curl")
    with pytest.raises(OptionError, match="unknown transport"):
        open_transport(HttpSettings(), prefer=["aiohttp"])  # type: ignore[arg-type]


def test_no_library_is_imported_before_a_transport_is_opened() -> None:
    """The package, and this module of it, load without either."""
    code = (
        "import sys, asynccommit, asynccommit.stores.http.base\n"
        "assert not {'aiohttp', 'pyreqwest', 'yarl'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("library", TRANSPORTS)
def test_no_secret_is_shown(library: str) -> None:
    """Neither settings nor transport show the password of a proxy."""
    settings = HttpSettings(proxy="http://user:secret@proxy:3128")
    assert "secret" not in repr(settings) + repr(open_transport(settings, prefer=library))


@pytest.mark.parametrize(
    "proxy", ["socks5://u:hidden@p:1080", "u:hidden@p:1", "http://u:hidden@[bad"]
)
async def test_a_proxy_of_another_kind_is_refused(proxy: str) -> None:
    """The error says what is known, and not what was given: there may be a password in it."""
    with pytest.raises(OptionError, match="http://host:port") as caught:
        open_transport(HttpSettings(proxy=proxy))
    assert "hidden" not in str(caught.value)


@given(st.text("abc.:@[]127/", max_size=30))
def test_only_this_machine_is_loopback(server: str) -> None:
    """Whatever is before an at sign is no host."""
    if is_loopback(server):
        assert is_loopback(f"elsewhere@{server}")
        assert not is_loopback(f"{server}@elsewhere")
