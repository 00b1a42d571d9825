"""The destination of requests to S3: bucket, region and service URL."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from urllib.parse import quote

from asynccommit.errors import OptionError
from asynccommit.stores.http.base import is_loopback
from asynccommit.stores.urls import Address

FALLBACK = "us-east-1"
"""The region that is asked while none is known: it says where a bucket is."""

_BUCKET = re.compile(r"(?=.{3,255}\Z)[A-Za-z0-9][A-Za-z0-9._-]*[A-Za-z0-9]", re.ASCII)
_HOST_LABEL = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]", re.ASCII)
_REGION = re.compile(r"[a-z0-9][a-z0-9-]{0,40}", re.ASCII)
_ENDPOINT = re.compile(
    r"(?P<scheme>https?)://(?P<host>[a-z0-9._-]+|\[[0-9a-f:.]+\])(?P<port>:[0-9]{1,5})?"
    r"(?P<path>(?:/(?!\.{1,2}(?:/|\Z))[a-z0-9._~-]+)*)/?",
    re.IGNORECASE,
)
# s3.REGION.amazonaws.com and its relatives: what Hadoop's configurations have for an endpoint.
_AWS = re.compile(
    r"s3(?P<fips>-fips)?(?P<dual>\.dualstack)?(?:[.-](?P<region>[a-z]{2}(?:-[a-z]+)+-[0-9]+))?"
    r"\.(?P<domain>amazonaws\.(?:com(?:\.cn)?|eu)|c2s\.ic\.gov|sc2s\.sgov\.gov)"
)
# The same of directory buckets: s3express-ZONE.REGION.amazonaws.com.
_ZONAL = re.compile(
    r"s3express(?P<fips>-fips)?-(?P<zone>[a-z0-9-]+)(?P<dual>\.dualstack)?"
    r"\.(?P<region>[a-z]{2}(?:-[a-z]+)+-[0-9]+)\.amazonaws\.(?:com(?:\.cn)?|eu)"
)
_DIRECTORY = re.compile(r"[a-z0-9][a-z0-9-]*?--(?P<zone>[a-z0-9]+(?:-[a-z0-9]+)+)--x-s3", re.ASCII)
_DOMAINS = (
    ("cn-", "amazonaws.com.cn"),
    ("us-iso-", "c2s.ic.gov"),
    ("us-isob-", "sc2s.sgov.gov"),
    ("eusc-", "amazonaws.eu"),
)
_DOMAIN = "amazonaws.com"
_PORTS = {"https": ":443", "http": ":80"}


@dataclass(frozen=True, slots=True)
class S3Endpoint:
    """A bucket, and how to reach it.

    Attributes:
        bucket: its name.
        region: the region for which requests are signed; empty until it is known.
        endpoint: scheme, host and port, if it is not AWS's own.
        prefix: the beginning of every path at ``endpoint``; nearly always empty.
        path_style: whether the bucket is named by the path, not by the host.
        scheme: the scheme of AWS's endpoint.
        variant: the variant of AWS's endpoint: ``-fips``, ``.dualstack``, both, or empty.
    """

    bucket: str
    region: str = ""
    endpoint: str = ""
    prefix: str = ""
    path_style: bool = False
    scheme: str = "https"
    variant: str = ""

    @property
    def real(self) -> bool:
        """Return whether the endpoint is AWS's own service, by its name."""
        return not self.endpoint

    @property
    def zone(self) -> str:
        """The zone of a directory bucket; empty for other buckets."""
        found = _DIRECTORY.fullmatch(self.bucket)
        return found["zone"] if found else ""

    @property
    def service(self) -> str:
        """The name of the service that requests are signed for."""
        return "s3express" if self.zone else "s3"

    @property
    def signed_for(self) -> str:
        """The region that requests are signed for."""
        return self.region or FALLBACK

    @property
    def server(self) -> str:
        """Host and port that requests go to, as the header ``host`` has them."""
        scheme, _, server = (self.endpoint or self._service()).partition("://")
        server = server.removesuffix(_PORTS[scheme])
        return server if self.path_style else f"{self.bucket}.{server}"

    @property
    def origin(self) -> str:
        """Scheme, host and port that requests go to."""
        return f"{'http' if self.plain else 'https'}://{self.server}"

    @property
    def path(self) -> str:
        """Path of the bucket, without a slash at its end."""
        bucket = f"/{quote(self.bucket, safe='')}" if self.path_style else ""
        return f"{self.prefix}{bucket}"

    @property
    def limit(self) -> str:
        """The name of what shares one limit on requests."""
        server = "" if self.real else f"@{self.endpoint.partition('://')[2]}"
        return f"s3://{self.bucket}{server}"

    @property
    def plain(self) -> bool:
        """Return whether requests are unencrypted."""
        return (self.endpoint or self.scheme).startswith("http:") or self.scheme == "http"

    def in_region(self, region: str) -> S3Endpoint:
        """Return the same bucket, known to be in ``region``."""
        return replace(self, region=region)

    def refuse_plain(self, secrets: str) -> None:
        """Raise ``OptionError`` if ``secrets`` would cross a network unencrypted."""
        if self.plain and not is_loopback(self.endpoint.partition("://")[2]):
            raise OptionError(f"{secrets} are not sent to {self.origin}: use https")

    def _service(self) -> str:
        region = self.signed_for
        domain = next((name for start, name in _DOMAINS if region.startswith(start)), _DOMAIN)
        if self.zone:
            fips, dual, rest = self.variant.partition(".dualstack")
            name = f"s3express{fips}-{self.zone}{dual}{rest}"
            return f"{self.scheme}://{name}.{region}.{domain}"
        return f"{self.scheme}://s3{self.variant}.{region}.{domain}"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The settings from which an endpoint is made.

    Attributes:
        endpoint: the name of an option and its URL, if an endpoint is configured.
        region: empty if not configured.
        path_style: ``None`` if not configured: path style where it is required, or the endpoint is
            not AWS.
        ssl: whether an endpoint without a scheme uses https.
        variant: see ``S3Endpoint``.
    """

    endpoint: tuple[str, str] | None = None
    region: str = ""
    path_style: bool | None = None
    ssl: bool = True
    variant: str = ""


def find_place(address: Address, wanted: Wanted) -> S3Endpoint:
    """Return the place of ``address``.

    Raises:
        OptionError: there can be no such bucket, region or endpoint.
    """
    bucket, region = _bucket(address), wanted.region
    if region and not is_region(region):
        raise OptionError(
            f"{region[:100]!r} is not the name of a region: expected one such as eu-west-1"
        )
    scheme = "https" if wanted.ssl else "http"
    # A dot in the name breaks the certificate of *.s3.REGION.amazonaws.com.
    by_path = wanted.path_style or not _HOST_LABEL.fullmatch(bucket)
    place = S3Endpoint(
        bucket, region, path_style=bool(by_path), scheme=scheme, variant=wanted.variant
    )
    if wanted.endpoint is None:
        return place
    return at_endpoint(place, *wanted.endpoint, by_path=wanted.path_style)


def at_endpoint(place: S3Endpoint, name: str, url: str, *, by_path: bool | None) -> S3Endpoint:
    """Return ``place`` at the endpoint ``url``, the value of ``name``.

    Args:
        place: the place without the endpoint.
        name: of the option or variable.
        url: ``https://HOST:PORT``, or without the scheme.
        by_path: whether the bucket is named by the path; ``None`` for what the endpoint needs.

    Raises:
        OptionError: it is not a URL.
    """
    text = url.strip()
    found = _ENDPOINT.fullmatch(text if "://" in text else f"{place.scheme}://{text}")
    if not found:  # it may have a password, so it is not repeated
        raise OptionError(
            f"{name} is not the URL of a service: expected https://HOST or http://HOST:PORT"
        )
    scheme, host = found["scheme"].lower(), found["host"].lower()
    if (aws := _AWS.fullmatch(host)) and not found["port"] and not found["path"]:
        region = place.region or aws["region"] or ""
        variant = place.variant or (aws["fips"] or "") + (aws["dual"] or "")
        return replace(place, region=region, scheme=scheme, variant=variant)
    if place.zone and (zonal := _ZONAL.fullmatch(host)):
        variant = place.variant or (zonal["fips"] or "") + (zonal["dual"] or "")
        region = place.region or zonal["region"]
        return replace(place, region=region, scheme=scheme, variant=variant)
    return replace(
        place,
        endpoint=f"{scheme}://{host}{found['port'] or ''}",
        prefix=found["path"],
        path_style=_by_path(place, host, by_path),
        scheme=scheme,
    )


def _by_path(place: S3Endpoint, host: str, wanted: bool | None) -> bool:
    """Return whether the bucket is named by the path at another endpoint.

    A directory bucket is named by the host, unless that is an address.
    """
    if not place.zone or wanted is not None:
        return wanted is not False
    with suppress(ValueError):
        ipaddress.ip_address(host.strip("[]"))
        return True
    return False


def is_region(name: str) -> bool:
    """Return whether a region may have this name, which joins a host's name."""
    return bool(_REGION.fullmatch(name))


def _bucket(address: Address) -> str:
    bucket = address.authority
    if not bucket:
        raise OptionError(f"{address} names no bucket: expected {address.scheme}://BUCKET/path")
    if "@" in bucket or ":" in bucket:  # keys, as old configurations of Hadoop have them
        raise OptionError(
            f"{address.scheme}: a URL names only a bucket and must not hold keys: set key and "
            "secret, or profile"
        )
    if not _BUCKET.fullmatch(bucket):
        raise OptionError(
            f"{bucket[:100]!r} is not the name of a bucket: expected 3 to 63 lower-case letters, "
            "digits, hyphens and dots"
        )
    if bucket.endswith("--xa-s3"):  # a suffix that AWS reserves, as --x-s3 is
        raise OptionError(
            f"{bucket!r} is an access point of a directory bucket, which is not supported: name "
            "the bucket itself, NAME--ZONE--x-s3"
        )
    if bucket.endswith("--x-s3") and not _DIRECTORY.fullmatch(bucket):
        raise OptionError(
            f"{bucket[:100]!r} is not the name of a directory bucket: expected NAME--ZONE--x-s3, "
            "such as data--use1-az4--x-s3"
        )
    return bucket


def endpoint_of_environment(environ: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the variable that names an endpoint, and its value, if one does."""
    if environ.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").strip().lower() == "true":
        return None
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
        if url := environ.get(name, "").strip():
            return name, url
    return None
