"""Sign requests with AWS Signature Version 4, by the library of the AWS tools.

Source: https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from importlib import import_module
from time import gmtime, strftime
from typing import Any, NamedTuple

from asynccommit.errors import UnsupportedError

UNSIGNED = "UNSIGNED-PAYLOAD"
_EMPTY = sha256(b"").hexdigest()
_NEEDED = "botocore is needed to sign requests to S3: pip install 'asynccommit[s3]'"
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

    def __repr__(self) -> str:
        return f"Keys({self.access[:4]}...)"


class Signer:
    """Signs requests to one server; what is the same for a day or a second is computed once.

    Args:
        server: host and port as the header ``host`` has them.
        region: of the bucket.
        plain: whether requests are not encrypted: then the body is signed too.

    Raises:
        UnsupportedError: the library is missing.
    """

    def __init__(self, server: str, region: str, *, plain: bool) -> None:
        self._server = server
        self._region = region
        self._plain = plain
        self._second = -1
        self._date = ""
        self._keys: SigningKeys | None = None
        if _LIBRARY is None:
            raise UnsupportedError(_NEEDED)
        self._auth: Any = None

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
            query: the query of the URL, sorted by name and encoded likewise, slashes too.
            headers: by lower-case name, values without blanks at either end or two in a row; all of
                them are signed.
            body: the whole body.
            now: seconds since the epoch.
        """
        if int(now) != self._second:
            self._second = int(now)
            self._date = strftime("%Y%m%dT%H%M%SZ", gmtime(self._second))
        if keys != self._keys:
            self._auth = _LIBRARY.new_auth(keys.access, keys.secret, self._region)
            self._keys = keys
        headers["x-amz-content-sha256"] = UNSIGNED
        if self._plain:
            headers["x-amz-content-sha256"] = sha256(body).hexdigest() if body else _EMPTY
        headers["x-amz-date"] = self._date
        if keys.token:
            headers["x-amz-security-token"] = keys.token
        url = f"https://{self._server}{path}?{query}"
        headers["authorization"] = self._auth.said(verb, url, headers, self._date)
