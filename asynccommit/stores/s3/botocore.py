"""The signer of the AWS tools, asked step by step.

As a whole it reads the clock of the machine and logs signed content, including tokens. Only
``sign`` imports this module: botocore may be missing.
"""

from __future__ import annotations

from collections.abc import Mapping

from botocore.auth import S3SigV4Auth
from botocore.compat import HTTPHeaders
from botocore.credentials import Credentials

_ALGORITHM = "AWS4-HMAC-SHA256"


class Auth(S3SigV4Auth):  # type: ignore[misc]
    """Botocore's signer, without its clock."""

    def said(self, verb: str, url: str, headers: Mapping[str, str], date: str) -> str:
        """Return the header that authorises a request.

        Args:
            verb: in capitals.
            url: the whole URL, encoded.
            headers: by name; the digest of the body is among them.
            date: in the format of the header ``x-amz-date``.
        """
        asked = _Asked(verb, url, headers, date)
        signed = self.headers_to_sign(asked)
        text = self.string_to_sign(asked, self.canonical_request(asked))
        return (
            f"{_ALGORITHM} Credential={self.scope(asked)}, "
            f"SignedHeaders={self.signed_headers(signed)}, Signature={self.signature(text, asked)}"
        )


def new_auth(access: str, secret: str, region: str, service: str = "s3") -> Auth:
    """Return the signer of one key."""
    return Auth(Credentials(access, secret), service, region)


class _Asked:
    """The attributes of a request that botocore's signer reads."""

    __slots__ = ("body", "context", "headers", "method", "params", "url")

    def __init__(self, verb: str, url: str, headers: Mapping[str, str], date: str) -> None:
        self.method = verb
        self.url = url
        self.headers = HTTPHeaders()
        for name, value in headers.items():
            self.headers[name] = value
        self.params: Mapping[str, str] | None = None  # they are in the URL
        self.body = b""  # its digest is among the headers
        self.context = {"timestamp": date}
