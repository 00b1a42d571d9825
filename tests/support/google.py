"""A token service and a metadata server of Google's kind, and the credentials that they know."""

from __future__ import annotations

import json
from asyncio import StreamWriter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import parse_qs

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.support.servers import RawServer, Seen, answer

SECRETS = ("hunter2", "refresh-hunter3", "ya29.")
"""Parts of whatever must appear in no error: of secrets, of private keys, of tokens."""

METADATA = "/computeMetadata/v1/instance/service-accounts/default/token?recursive=true"


@cache
def private_key() -> rsa.RSAPrivateKey:
    """Return the private key of the service account."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@cache
def pem() -> str:
    """Return that key as a file of credentials has it."""
    return (
        private_key()
        .private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        .decode()
    )


def service_account(url: str, **more: Any) -> dict[str, Any]:
    """Return the credentials of a service account that asks at ``url``."""
    return {
        "type": "service_account",
        "project_id": "project",
        "private_key_id": "id-of-key",
        "private_key": pem(),
        "client_email": "sa@project.iam.gserviceaccount.com",
        "token_uri": url,
        **more,
    }


def authorized_user(url: str, **more: Any) -> dict[str, Any]:
    """Return the credentials of a user, as gcloud writes them."""
    return {
        "type": "authorized_user",
        "client_id": "client",
        "client_secret": "hunter2",
        "refresh_token": "refresh-hunter3",
        "token_uri": url,
        **more,
    }


@dataclass
class Request:
    """A request as it came: its form or JSON in ``fields``, its headers by lower-case name."""

    verb: str
    target: str
    headers: Mapping[str, str]
    fields: Mapping[str, Any]


Reply = tuple[int, dict[str, Any] | str]


@dataclass
class IdentityServer(RawServer):
    """Gives tokens ``ya29.1``, ``ya29.2`` and so on; ``reply`` may answer otherwise.

    Attributes:
        requests: what it was asked.
        seconds: how long its tokens last.
        reply: what it answers instead, if it returns something.
    """

    script: Any = None
    requests: list[Request] = field(default_factory=list)
    seconds: int = 3600
    reply: Callable[[Request], Reply | None] = lambda request: None

    def __post_init__(self) -> None:
        self.script = self._script

    async def _script(self, seen: Seen, writer: StreamWriter) -> None:
        request = _request(seen)
        self.requests.append(request)
        status, body = self.reply(request) or self._token(request)
        text = body if isinstance(body, str) else json.dumps(body)
        flavor = ["Metadata-Flavor: Google"] if "metadata-flavor" in request.headers else []
        writer.write(answer(f"{status} Whatever", text.encode(), flavor))

    def _token(self, request: Request) -> Reply:
        token = f"ya29.{len(self.requests)}"
        if request.target.endswith(":generateAccessToken"):
            return 200, {"accessToken": token, "expireTime": "2030-01-01T00:00:00Z"}
        return 200, {
            "access_token": token,
            "expires_in": self.seconds,
            "token_type": "Bearer",
        }


def _request(seen: Seen) -> Request:
    verb, target, _ = seen.line.decode().split(" ")
    headers = {name.decode().lower(): value.decode() for name, value in seen.headers}
    body = seen.body.decode()
    fields = json.loads(body) if body[:1] == "{" else _form(body)
    return Request(verb, target, headers, fields)


def _form(body: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(body).items()}
