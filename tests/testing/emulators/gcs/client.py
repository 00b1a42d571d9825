"""A client that writes what it is told to: to see the JSON API's wire as it is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from asynccommit.testing.emulators.gcs.emulator import GcsEmulator
from tests.testing.emulators.adls.raw import Raw

BUCKET = "data"
MULTIPART = {"Content-Type": "multipart/related; boundary=b"}


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
    def reason(self) -> str:
        """The service's reason, or an empty text."""
        if not self.headers.get("content-type", "").startswith("application/json"):
            return ""
        return str(self.json.get("error", {}).get("errors", [{}])[0].get("reason", ""))

    @property
    def brief(self) -> tuple[int, str]:
        """Status and reason."""
        return self.status, self.reason


def segment(name: str) -> str:
    """Return a name as one segment of a path."""
    return quote(name, safe="")


class GcsClient(Raw):
    """One connection to an emulator; asks about one bucket unless told otherwise."""

    def __init__(self, emulator: GcsEmulator, bucket: str = BUCKET) -> None:
        super().__init__(emulator)
        self.emulator = emulator
        self.bucket = bucket

    async def send(
        self,
        method: str,
        target: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send one request for this very target."""
        sent = {"Host": f"127.0.0.1:{self.emulator.port}", "Content-Length": str(len(body))}
        head = "".join(
            f"{name}: {value}\r\n" for name, value in {**sent, **(headers or {})}.items()
        )
        data = f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + body
        return Answer(*await self.talk(data, bodiless=method == "HEAD"))

    async def ask(
        self,
        method: str,
        path: str,
        value: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        **query: Any,
    ) -> Answer:
        """Ask about a path below the bucket, with JSON as the body if a value is given."""
        place = f"/storage/v1/b/{self.bucket}{path and '/' + path}{_query(query)}"
        body = b"" if value is None else json.dumps(value).encode()
        return await self.send(method, place, body, headers)

    async def get(self, name: str, **query: Any) -> Answer:
        """Return the answer that has an object's resource."""
        return await self.ask("GET", f"o/{segment(name)}", **query)

    async def media(self, name: str, *, headers: Any = None, **query: Any) -> Answer:
        """Return the answer that has an object's bytes."""
        return await self.ask("GET", f"o/{segment(name)}", headers=headers, alt="media", **query)

    async def put(self, name: str, data: bytes = b"", **query: Any) -> Answer:
        """Upload bytes alone."""
        target = f"/upload/storage/v1/b/{self.bucket}/o"
        target += _query({"uploadType": "media", "name": name, **query})
        return await self.send("POST", target, data, {"Content-Type": "text/plain"})

    async def upload(self, given: Any, data: bytes, **more: str) -> Answer:
        """Upload bytes with a description; ``more`` is of the form of the body."""
        target = f"/upload/storage/v1/b/{self.bucket}/o?uploadType=multipart"
        return await self.send("POST", target, multipart(given, data, **more), MULTIPART)

    async def send_json(self, method: str, target: str, given: Any) -> Answer:
        """Send JSON to this very target."""
        headers = {"Content-Type": "application/json"}
        return await self.send(method, target, json.dumps(given).encode(), headers)

    async def make(self, name: str, data: bytes = b"") -> int:
        """Upload bytes, and return the generation."""
        answer = await self.put(name, data)
        assert answer.status == 200, answer
        return int(answer.json["generation"])

    async def delete(self, name: str, **query: Any) -> Answer:
        """Delete an object."""
        return await self.ask("DELETE", f"o/{segment(name)}", **query)

    async def move(self, source: str, dest: str, **query: Any) -> Answer:
        """Move an object."""
        return await self.ask("POST", f"o/{segment(source)}/moveTo/o/{segment(dest)}", **query)

    async def page(self, **query: Any) -> Answer:
        """Return a page of the objects."""
        return await self.ask("GET", "o", **query)

    async def page_as(self, authorization: str) -> Answer:
        """Return a page of the objects for whoever has this credential; ``""`` has none."""
        headers = {"Authorization": authorization} if authorization else {}
        return await self.ask("GET", "o", headers=headers)

    async def names(self, **query: Any) -> list[str]:
        """Return the names of the objects, of all pages."""
        found: list[str] = []
        while True:
            answer = await self.page(**query)
            assert answer.status == 200, answer
            found += [item["name"] for item in answer.json.get("items", [])]
            if "nextPageToken" not in answer.json:
                return found
            query["pageToken"] = answer.json["nextPageToken"]

    async def batch(self, requests: Iterable[str], **headers: str) -> list[tuple[int, bytes]]:
        """Send requests as one, and return status and body of each answer."""
        answer = await self.send_batch(requests, **headers)
        assert answer.status == 200, answer
        return parts_of(answer)

    async def send_batch(self, requests: Iterable[str], **headers: str) -> Answer:
        """Send requests as one; each is its head, without the empty line."""
        body = "".join(
            f"--b\r\nContent-Type: application/http\r\nContent-ID: <id+{number}>\r\n\r\n"
            f"{request}\r\n\r\n\r\n"
            for number, request in enumerate(requests)
        )
        given = {"Content-Type": "multipart/mixed; boundary=b", **headers}
        return await self.send("POST", "/batch/storage/v1", f"{body}--b--".encode(), given)


def parts_of(answer: Answer) -> list[tuple[int, bytes]]:
    """Return status and body of each answer in the answer to a batch."""
    boundary = answer.headers["content-type"].partition("boundary=")[2].encode()
    found = []
    for part in answer.body.split(b"--" + boundary)[1:-1]:
        _, _, inner = part.strip(b"\r\n").partition(b"\r\n\r\n")
        head, _, body = inner.partition(b"\r\n\r\n")
        found.append((int(head.split()[1]), body))
    return found


def multipart(given: Any, data: bytes, kind: str = "text/plain", end: str = "\r\n") -> bytes:
    """Return the body of an upload with a description, whose boundary is ``b``."""
    first = f"--b{end}Content-Type: application/json{end}{end}{json.dumps(given)}{end}"
    second = f"--b{end}Content-Type: {kind}{end}{end}"
    return f"{first}{second}".encode() + data + f"{end}--b--{end}".encode()


def _query(query: Mapping[str, Any]) -> str:
    given = {name: str(value).lower() if value is True else value for name, value in query.items()}
    return f"?{urlencode(given)}" if given else ""
