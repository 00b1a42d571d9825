"""Sign requests with AWS Signature Version 4.

Source: https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html

The signer of botocore takes eight times as long, half of the CPU of a completed upload. It signs
all other requests, and ``tests/stores/s3/test_sign.py`` compares the two.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from importlib import import_module
from time import gmtime, strftime
from typing import Any, NamedTuple

from asynccommit.errors import UnsupportedError

UNSIGNED = "UNSIGNED-PAYLOAD"
NOT_SIGNED = frozenset(
    {
        *("baggage", "connection", "expect", "keep-alive", "te", "trailer", "transfer-encoding"),
        *("proxy-authenticate", "proxy-authorization", "traceparent", "tracestate", "upgrade"),
        *("user-agent", "x-amzn-trace-id"),
    }
)
"""Headers that a proxy or a library may change on the way."""

_ALGORITHM = "AWS4-HMAC-SHA256"
_EMPTY = sha256(b"").hexdigest()
_NEEDED = "botocore is needed to sign requests to S3: pip install 'asynccommit[s3]'"
_OTHERS = frozenset({"authorization", "host"})
_SHAPES = 256  # sets of header names that are remembered: a store sends about twenty
_LIBRARY: Any = None
with suppress(ImportError):  # it is asked for when a store is opened
    _LIBRARY = import_module("asynccommit.stores.s3.botocore")


class SigningKeys(NamedTuple):
    """The keys that sign requests; their text shows no secret.

    Attributes:
        access: the id of the key.
        secret: the key.
        token: the token of a session; empty without one.
    """

    access: str
    secret: str
    token: str = ""

    @property
    def header(self) -> str:
        """The header that carries the token."""
        return "x-amz-security-token"

    def __repr__(self) -> str:
        return f"Keys({self.access[:4]}...)"


class SessionKeys(SigningKeys):
    """The keys of a session of one directory bucket."""

    @property
    def header(self) -> str:
        return "x-amz-s3session-token"


class Shape(NamedTuple):
    """The part of a signature that depends only on header names.

    Attributes:
        names: of the headers that are signed, sorted, ``host`` among them.
        signed: the same as the signature lists them.
    """

    names: tuple[str, ...]
    signed: str


class DayKey:
    """The key of one day, region and service; its text shows no secret.

    Args:
        keys: that it is derived from.
        day: as ``YYYYMMDD``.
        region: that requests go to.
        service: for which it is valid.
    """

    __slots__ = ("_mac", "_scope", "_start")

    def __init__(self, keys: SigningKeys, day: str, region: str, service: str = "s3") -> None:
        key = b"AWS4" + keys.secret.encode()
        for part in (day, region, service, "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        self._mac = hmac.new(key, digestmod="sha256")
        self._scope = f"{day}/{region}/{service}/aws4_request"
        self._start = f"{_ALGORITHM} Credential={keys.access}/{self._scope}, SignedHeaders="

    def __repr__(self) -> str:
        return f"DayKey({self._scope})"

    def authorization(self, date: str, signed: str, request: str) -> str:
        """Return the header that authorises a canonical request.

        Args:
            date: as the header ``x-amz-date`` has it.
            signed: the names of the signed headers.
            request: see ``canonical``.
        """
        digest = sha256(request.encode()).hexdigest()
        text = f"{_ALGORITHM}\n{date}\n{self._scope}\n{digest}"
        mac = self._mac.copy()  # unlike hmac.digest, it keeps the GIL: giving it away takes longer
        mac.update(text.encode())
        return f"{self._start}{signed}, Signature={mac.hexdigest()}"


class Signer:
    """A signer of requests to one server, with cached derived keys.

    Args:
        server: host and port as the header ``host`` has them.
        region: of the bucket.
        plain: whether requests are not encrypted: then the body is signed too.
        service: that the requests go to.

    Raises:
        UnsupportedError: the library is missing.
    """

    def __init__(self, server: str, region: str, *, plain: bool, service: str = "s3") -> None:
        self._service = service
        self._server = server
        self._host = server.lower()  # as it is sent
        self._region = region
        self._plain = plain
        self._second = -1
        self._date = ""
        self._keys: SigningKeys | None = None
        self._day = ""
        self._key: DayKey | None = None
        self._shapes: dict[tuple[str, ...], Shape | None] = {}
        if _LIBRARY is None:
            raise UnsupportedError(_NEEDED)

    def __repr__(self) -> str:
        return f"Signer({self._server}, {self._region})"

    def sign(
        self,
        keys: SigningKeys,
        verb: str,
        path: str,
        query: str,
        headers: dict[str, str],
        body: bytes,
        now: float,
    ) -> None:
        """Sign a request: add its authorisation to ``headers``.

        Args:
            keys: the caller's keys.
            verb: in capitals.
            path: the path of the URL, with every byte encoded but letters, digits, ``-._~`` and
                slashes.
            query: the query of the URL, encoded likewise, slashes too.
            headers: by name; signed are all of them but those in ``NOT_SIGNED``.
            body: the whole body.
            now: seconds since the epoch.
        """
        key = self._key_at(keys, int(now))
        digest = UNSIGNED
        if self._plain:
            digest = sha256(body).hexdigest() if body else _EMPTY
        headers["x-amz-content-sha256"] = digest
        headers["x-amz-date"] = self._date
        if keys.token:
            headers[keys.header] = keys.token
        shape = self._shape(headers)
        if shape is None:
            headers["authorization"] = self._by_library(keys, verb, path, query, headers)
            return
        values = {**headers, "host": self._host}
        request = canonical(verb, path, query, values, shape, digest)
        headers["authorization"] = key.authorization(self._date, shape.signed, request)

    def _key_at(self, keys: SigningKeys, second: int) -> DayKey:
        """Return the key for a time, which is the date of the signature."""
        if second != self._second:
            self._second = second
            self._date = strftime("%Y%m%dT%H%M%SZ", gmtime(second))
        day = self._date[:8]
        if self._key is None or day != self._day or keys != self._keys:
            self._key = DayKey(keys, day, self._region, self._service)
            self._keys, self._day = keys, day
        return self._key

    def _shape(self, headers: Mapping[str, str]) -> Shape | None:
        """Return the shape of headers; ``None`` if the library must sign them."""
        names = tuple(headers)
        try:
            return self._shapes[names]
        except KeyError:
            if len(self._shapes) >= _SHAPES:
                self._shapes.clear()
            found = self._shapes[names] = shape_of(names)
            return found

    def _by_library(
        self, keys: SigningKeys, verb: str, path: str, query: str, headers: Mapping[str, str]
    ) -> str:
        auth = _LIBRARY.new_auth(keys.access, keys.secret, self._region, self._service)
        url = f"{'http' if self._plain else 'https'}://{self._server}{path}?{query}"
        said: str = auth.said(verb, url, headers, self._date)
        return said


def shape_of(names: tuple[str, ...]) -> Shape | None:
    """Return the shape of headers beside ``host``; ``None`` for upper case."""
    if any(name != name.lower() or name in _OTHERS for name in names):
        return None  # it may be there twice
    signed = tuple(sorted({"host", *names} - NOT_SIGNED))
    return Shape(signed, ";".join(signed))


def canonical(
    verb: str, path: str, query: str, headers: Mapping[str, str], shape: Shape, digest: str
) -> str:
    """Return the canonical form of a request.

    Args:
        verb: in capitals.
        path: encoded, as it is sent.
        query: encoded, as it is sent.
        headers: by name; those of ``shape`` are in it.
        shape: of the headers.
        digest: of the body, in hexadecimal digits, or what stands for it.
    """
    lines = [f"{name}:{' '.join(headers[name].split())}" for name in shape.names]
    head = f"{verb}\n{path}\n{_sorted_query(query)}\n"
    return head + "\n".join(lines) + f"\n\n{shape.signed}\n{digest}"


def _sorted_query(query: str) -> str:
    """Return a query sorted by names, then values; every name has a value."""
    if "&" not in query:
        return query if "=" in query or not query else f"{query}="
    # As pairs: as text, "a-b=" would come before "a=".
    pairs = sorted(pair.partition("=")[::2] for pair in query.split("&"))
    return "&".join([f"{name}={value}" for name, value in pairs])
