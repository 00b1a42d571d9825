"""Stores over the emulator's own application, without a socket in between."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from asynccommit.stores.gcs.store import GcsStore
from asynccommit.stores.http.base import Response, TooLargeError, Transport, TransportError
from asynccommit.stores.urls import parse_url
from asynccommit.testing.emulators.gcs.app import GcsApp
from asynccommit.testing.models.gcs.model import BucketOptions, GcsLimits, GcsService

BUCKET = "data"
URL = f"gs://{BUCKET}/"
ENDPOINT = "http://127.0.0.1:1"
HERE: dict[str, Any] = {"endpoint_url": ENDPOINT, "token": "anon"}

Change = Callable[["Sent"], Response | TransportError | None]


class Sent:
    """A request as it was sent."""

    def __init__(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> None:
        self.method = method
        self.path = urlsplit(url).path
        self.query = urlsplit(url).query
        self.headers = dict(headers)
        self.body = body

    def __repr__(self) -> str:
        return f"{self.method} {self.path}?{self.query}"


class Direct:
    """A transport whose requests are answered at once, by an application or by a test.

    Args:
        app: what answers.
        before: given a request before it is performed; an answer of it takes the place.
        after: the same, once it has been performed.
    """

    def __init__(self, app: GcsApp | None = None) -> None:
        self.app = app
        self.before: Change = lambda sent: None
        self.after: Change = lambda sent: None
        self.seen: list[Sent] = []
        self.closed = False

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", *, limit: int
    ) -> Response:
        """See ``Transport``."""
        sent = Sent(method, url, headers, body)
        self.seen.append(sent)
        said = self.before(sent)
        if said is None:
            assert self.app is not None, f"nobody answers {sent}"
            target = url.removeprefix(ENDPOINT)
            answer = self.app.answer(method, target, headers, body)
            said = self.after(sent)
            if said is None:
                known = {name.lower(): value for name, value in answer.headers.items()}
                said = Response(answer.status, known, answer.body)
        if isinstance(said, TransportError):
            raise said
        if len(said.body) > limit:
            raise TooLargeError(f"{method} {url}: the answer is larger than {limit} bytes")
        return said

    async def aclose(self) -> None:
        """See ``Transport``."""
        self.closed = True

    def count(self, part: str, method: str = "") -> int:
        """Return how many requests had ``part`` in their path, of one method or of all."""
        return sum(part in sent.path and sent.method.startswith(method) for sent in self.seen)


class Clock:
    """Seconds that pass by themselves, a millisecond at every look."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        """Return the time."""
        self.now += 0.001
        return self.now


def new_service(limits: GcsLimits | None = None, **options: Any) -> GcsService:
    """Return a service with the bucket."""
    numbers = iter(range(1, 1 << 62))
    service = GcsService(
        now=Clock(), new_id=lambda: f"{next(numbers):032x}", limits=limits or GcsLimits()
    )
    service.create_bucket(BUCKET, BucketOptions(**options))
    return service


def new_store(
    transport: Transport, url: str = URL, kind: type[GcsStore] = GcsStore, **options: Any
) -> GcsStore:
    """Return a store whose requests go to ``transport``."""
    return kind(parse_url(url), {**HERE, **options}, environ={}, transport=transport)
