"""A client that writes what it is told to: to see the emulator's wire as it is."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from email.utils import formatdate
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote

from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from tests.testing.emulators.adls.raw import Raw

VERSION = "2024-11-04"
SIGNED = (
    *("Content-Encoding", "Content-Language", "Content-Length", "Content-MD5", "Content-Type"),
    *("Date", "If-Modified-Since", "If-Match", "If-None-Match", "If-Unmodified-Since", "Range"),
)


class Answer(NamedTuple):
    """Status, headers with lower-case names, body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The service's error code, or an empty text."""
        return self.headers.get("x-ms-error-code", "")

    @property
    def brief(self) -> tuple[int, str]:
        """Status and error code."""
        return self.status, self.code

    @property
    def etag(self) -> str:
        """The ETag as it was sent."""
        return self.headers["etag"]


class WireClient(Raw):
    """One connection to an emulator; signs with the key of its account."""

    def __init__(self, emulator: AdlsEmulator, filesystem: str = "data") -> None:
        super().__init__(emulator)
        self.emulator = emulator
        self.filesystem = filesystem
        self.key = emulator.key
        self.skew = 0.0

    async def ask(
        self,
        method: str,
        path: str | None = "",
        query: str = "",
        *,
        body: bytes = b"",
        signed: bool = True,
        more: Mapping[str, str] | None = None,
        **headers: str,
    ) -> Answer:
        """Send one signed request about a path of the filesystem; ``None`` is the account.

        Header names are given with underscores.
        """
        place = f"/{self.emulator.account}"
        if path is not None:
            place += f"/{self.filesystem}" + (f"/{quote(path)}" if path else "")
        named = {**headers, **(more or {})}
        given = {name.replace("_", "-"): value for name, value in named.items()}
        return await self.send(method, place, query, body=body, headers=given, signed=signed)

    async def send(
        self,
        method: str,
        place: str,
        query: str = "",
        *,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        signed: bool = True,
    ) -> Answer:
        """Send one request for this very target."""
        sent = {"Host": f"127.0.0.1:{self.emulator.port}", "Content-Length": str(len(body))}
        sent |= {"x-ms-version": VERSION, **(headers or {})}
        if signed:
            sent["x-ms-date"] = formatdate(time.time() + self.skew, usegmt=True)
            sent["Authorization"] = self._authorization(method, place, query, sent)
        target = f"{place}?{query}" if query else place
        head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
        data = f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + body
        return await self.exchange(data, bodiless=method == "HEAD")

    def _authorization(
        self, method: str, place: str, query: str, headers: Mapping[str, str]
    ) -> str:
        lower = {name.lower(): value for name, value in headers.items()}
        standard = [lower.get(name.lower(), "") for name in SIGNED]
        if standard[2] == "0":
            standard[2] = ""
        own = [f"{name}:{lower[name]}\n" for name in sorted(lower) if name[:5] == "x-ms-"]
        pairs = sorted(parse_qsl(query, keep_blank_values=True))
        resource = f"/{self.emulator.account}{place}"
        resource += "".join(f"\n{name.lower()}:{value}" for name, value in pairs)
        text = "\n".join([method, *standard, ""]) + "".join(own) + resource
        key = base64.b64decode(self.key)
        digest = hmac.new(key, text.encode(), hashlib.sha256).digest()
        return f"SharedKey {self.emulator.account}:{base64.b64encode(digest).decode()}"

    async def exchange(self, data: bytes, *, bodiless: bool = False) -> Answer:
        """Send bytes and read one answer. Raises ``IncompleteReadError`` if it is cut."""
        return Answer(*await self.talk(data, bodiless=bodiless))

    async def next(self, *, bodiless: bool = False) -> Answer:
        """Read one more answer, to what was sent before."""
        return Answer(*await self.read(bodiless=bodiless))

    async def make(self, path: str, data: bytes = b"") -> Answer:
        """Write a file, and return the answer that has its etag."""
        made = await self.ask("PUT", path, "resource=file")
        assert made.status == 201, made
        if not data:
            return made
        await self.ask("PATCH", path, "action=append&position=0", body=data)
        made = await self.ask("PATCH", path, f"action=flush&position={len(data)}")
        assert made.status == 200, made
        return made

    async def mkdir(self, path: str) -> Answer:
        """Make a directory."""
        made = await self.ask("PUT", path, "resource=directory")
        assert made.status == 201, made
        return made

    async def head(self, path: str) -> Answer:
        """Return the status of a path."""
        return await self.ask("HEAD", path, "action=getStatus&upn=false")

    async def rename(self, source: str, dest: str, query: str = "", **headers: str) -> Answer:
        """Rename within the filesystem."""
        place = f"/{self.filesystem}/{quote(source)}"
        return await self.ask("PUT", dest, query, x_ms_rename_source=place, more=headers)

    async def names(self, path: str = "", query: str = "recursive=true") -> list[str]:
        """Return the names below a directory."""
        place = f"&directory={quote(path, safe='')}" if path else ""
        answer = await self.ask("GET", "", f"resource=filesystem&{query}{place}")
        assert answer.status == 200, answer
        return [entry["name"] for entry in answer.json["paths"]]
