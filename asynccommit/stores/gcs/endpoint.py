"""The destination of requests to Google: bucket and service URL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from asynccommit.errors import OptionError
from asynccommit.stores.http.base import is_loopback
from asynccommit.stores.urls import Address

SERVICE = "/storage/v1"
EMULATOR = "STORAGE_EMULATOR_HOST"

_BUCKET = re.compile(r"(?=.{3,222}\Z)[a-z0-9](?:[a-z0-9_-]{0,61}[a-z0-9])?(?:\.[a-z0-9_-]{1,63})*")
_ENDPOINT = re.compile(
    r"(?P<origin>https?://(?P<server>(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?))"
    r"(?P<path>(?:/(?!\.{1,2}(?:/|\Z))[a-z0-9._-]+)*)/?",
    re.IGNORECASE,
)
_SEGMENTS = re.compile(r"(?:/(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._-]+)+")
_UNIVERSE = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)+")
_DEFAULT = "googleapis.com"


@dataclass(frozen=True, slots=True)
class GcsEndpoint:
    """A bucket, and how to reach it.

    Attributes:
        bucket: its name.
        origin: scheme, host and port that requests go to.
        prefix: what begins every path there: nearly always empty.
        service: path of the JSON interface.
        real: whether that is Google's service, by its name.
        emulator: whether the environment names it as an emulator.
    """

    bucket: str
    origin: str
    prefix: str = ""
    service: str = SERVICE
    real: bool = True
    emulator: bool = False

    @property
    def limit(self) -> str:
        """The name of what shares one limit on requests."""
        server = "" if self.real else f"@{self.origin.partition('://')[2]}"
        return f"gs://{self.bucket}{server}"

    @property
    def bucket_path(self) -> str:
        """Path of the bucket; its folders and operations are below."""
        return f"{self.prefix}{self.service}/b/{quote(self.bucket, safe='')}"

    @property
    def objects(self) -> str:
        """Path of the bucket's objects."""
        return f"{self.bucket_path}/o"

    @property
    def uploads(self) -> str:
        """Path that objects are uploaded to."""
        return f"{self.prefix}/upload{self.service}/b/{quote(self.bucket, safe='')}/o"

    @property
    def batches(self) -> str:
        """Path that batches of requests are sent to."""
        return f"{self.prefix}/batch{self.service}"

    @property
    def plain(self) -> bool:
        """Return whether requests are unencrypted."""
        return self.origin.startswith("http:")

    def refuse_plain(self, secrets: str) -> None:
        """Raise ``OptionError`` if ``secrets`` would cross a network unencrypted."""
        if self.plain and not is_loopback(self.origin.partition("://")[2]):
            raise OptionError(f"{secrets} are not sent to {self.origin}: use https")


def find_place(
    address: Address, endpoint: tuple[str, str] | None, service: str, environ: Mapping[str, str]
) -> GcsEndpoint:
    """Return the place of ``address``.

    Args:
        address: ``gs://bucket/`` or ``gcs://bucket/``.
        endpoint: the name of an option and the URL that it gives, if one does.
        service: path of the JSON interface, if it is another; empty if not.
        environ: the environment, for options that are not set.

    Raises:
        OptionError: there can be no such bucket or endpoint.
    """
    bucket = _bucket(address)
    universe = _universe(environ)
    emulator = environ.get(EMULATOR, "").strip()
    named = endpoint is None and emulator not in ("", "default")
    if endpoint is None:
        endpoint = _of_environment(emulator, universe)
    origin, server, prefix = _read(*endpoint)
    host = server.partition(":")[0]
    real = any(host.endswith(f".{domain}") for domain in (_DEFAULT, universe))
    return GcsEndpoint(bucket, origin, prefix, _service(service), real, named)


def _bucket(address: Address) -> str:
    bucket = address.authority
    if not bucket:
        raise OptionError(f"{address} names no bucket: expected {address.scheme}://BUCKET/path")
    if not _BUCKET.fullmatch(bucket) or bucket[-1] in "-_":
        raise OptionError(
            f"{bucket[:100]!r} is not the name of a bucket: expected 3 to 63 lower-case letters, "
            "digits, hyphens and underscores, or several such parts with dots between"
        )
    return bucket


def _universe(environ: Mapping[str, str]) -> str:
    universe = environ.get("GOOGLE_CLOUD_UNIVERSE_DOMAIN", "").strip() or _DEFAULT
    if not _UNIVERSE.fullmatch(universe):
        raise OptionError(f"GOOGLE_CLOUD_UNIVERSE_DOMAIN is {universe[:100]!r}: expected a domain")
    return universe


def _of_environment(emulator: str, universe: str) -> tuple[str, str]:
    if emulator in ("", "default"):
        return "GOOGLE_CLOUD_UNIVERSE_DOMAIN", f"https://storage.{universe}"
    return EMULATOR, emulator if "://" in emulator else f"http://{emulator}"


def _read(name: str, url: str) -> tuple[str, str, str]:
    """Return origin, server and prefix of ``url``, the value of ``name``."""
    found = _ENDPOINT.fullmatch(url.strip())
    if not found:
        # It may have a password, so it is not repeated.
        raise OptionError(
            f"{name} is not the URL of a service: expected https://HOST or http://HOST:PORT"
        )
    origin, server = found["origin"].lower(), found["server"].lower()
    return origin, server, found["path"].removesuffix(SERVICE)


def _service(path: str) -> str:
    path = "/" + path.strip("/") if path else SERVICE
    if not _SEGMENTS.fullmatch(path):
        raise OptionError(f"fs.gs.storage.service.path is {path[:100]!r}: expected storage/v1")
    return path
