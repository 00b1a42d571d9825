"""Hadoop's options of S3: what a cluster's configuration has for ``s3a:``.

A key may be said for one bucket, ``fs.s3a.bucket.NAME.access.key``, which counts before the one for
all. What the connector does by itself and is not done here is passed over; what names an identity,
an endpoint or a key and would be misunderstood is warned of.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from difflib import get_close_matches

from asynccommit.errors import OptionError
from asynccommit.options.job import OptionWarning
from asynccommit.stores.http.options import HadoopOptions
from asynccommit.stores.s3.keys import Encryption
from asynccommit.stores.s3.sign import SigningKeys

PREFIX = "fs.s3a."

_ACCESS, _SECRET, _TOKEN = "access.key", "secret.key", "session.token"
_PROVIDER = "aws.credentials.provider"
_ENCRYPTION = ("encryption.algorithm", "server-side-encryption-algorithm")
_ENCRYPTION_KEY = ("encryption.key", "server-side-encryption.key")
# Where a wrong name would mean another identity, place or key, or none.
_FAMILIES = (
    "access.",
    "secret.",
    "session.",
    "endpoint",
    "path.style",
    "encryption.",
    "server-side-encryption",
    "aws.credentials",
    "assumed.role.",
    "requester.pays.",
    "security.credential.",
    "accesspoint.",
    "delegation.token",
    "custom.signers",
)
_MISTYPED = 0.9  # how alike a name of none of them must be: Hadoop has hundreds
_KNOWN = frozenset(
    {
        *(_ACCESS, _SECRET, _TOKEN, _PROVIDER, *_ENCRYPTION, *_ENCRYPTION_KEY),
        "aws.credentials.provider.mapping",
        "encryption.context",
        "endpoint",
        "endpoint.fips",
        "endpoint.region",
        "path.style.access",
        "requester.pays.enabled",
    }
)
_ANONYMOUS = frozenset({"AnonymousAWSCredentialsProvider", "AnonymousCredentialsProvider"})
# Of Hadoop and both generations of the SDK; the machine's own chain has all that they look for.
_KEYS = frozenset({"SimpleAWSCredentialsProvider", "TemporaryAWSCredentialsProvider"})
_MACHINE = frozenset(
    {
        "ContainerCredentialsProvider",
        "DefaultAWSCredentialsProviderChain",
        "DefaultCredentialsProvider",
        "EC2ContainerCredentialsProviderWrapper",
        "EnvironmentVariableCredentialsProvider",
        "IAMInstanceCredentialsProvider",
        "InstanceProfileCredentialsProvider",
        "ProfileAWSCredentialsProvider",
        "ProfileCredentialsProvider",
        "WebIdentityTokenCredentialsProvider",
        "WebIdentityTokenFileCredentialsProvider",
    }
)
_HOST = re.compile(r"[\w.-]+|\[[0-9a-f:.]+\]", re.ASCII | re.IGNORECASE)


class S3aOptions(HadoopOptions):
    """Options whose names begin with ``fs.s3a.``, as set for one bucket."""

    prefixes = (PREFIX,)
    timeouts = ("connection.establish.timeout", "connection.timeout", "connection.request.timeout")
    agent = "user.agent.prefix"

    def __init__(self, conf: Mapping[str, str], bucket: str) -> None:
        own = f"{PREFIX}bucket.{bucket}."
        mine = {PREFIX + key.removeprefix(own): key for key in conf if key.startswith(own)}
        known = {key: key for key in conf if not key.startswith(f"{PREFIX}bucket.")} | mine
        super().__init__({key: conf[source] for key, source in known.items()})
        for key, source in known.items():
            _warn(key.removeprefix(PREFIX), source)

    def count(self, name: str, most: int = (1 << 31) - 1) -> int | None:
        """Return the whole number ``name``, limited to ``most``, or ``None``."""
        return self.sized(name, most, "a whole number of at least 1")

    def proxy(self) -> str | None:
        """Return the URL of the proxy; ``None`` if none is given."""
        host, port = self.get("proxy.host"), self.get("proxy.port")
        if not host:
            return None
        secured = self.flag("proxy.ssl.enabled")
        port = port or ("443" if secured else "80")
        if not _HOST.fullmatch(host) or not port.isdecimal():
            raise OptionError(f"{PREFIX}proxy.host and proxy.port are not a host and a port")
        return f"{'https' if secured else 'http'}://{self.proxy_user()}{host}:{port}"

    def encryption(self) -> Encryption:
        """Return the options for encryption."""
        method, key = self.get(*_ENCRYPTION), self.get(*_ENCRYPTION_KEY)
        return Encryption(method, key, self.get("encryption.context"))

    def keys(self) -> SigningKeys | None:
        """Return the keys that are given, if there are any.

        Raises:
            OptionError: one of two is missing.
        """
        access, secret, token = self.get(_ACCESS), self.get(_SECRET), self.get(_TOKEN)
        if not (access or secret):
            return None
        if not (access and secret):
            missing = _SECRET if access else _ACCESS
            raise OptionError(
                f"{PREFIX}{missing} is missing, but the other half of the key is given"
            )
        return SigningKeys(access, secret, token)

    def provider(self) -> str:
        """Return the credential source: ``anonymous``, ``keys``, ``machine``.

        The result is empty if it is not configured.
        """
        named = [name for name in re.split(r"[,\s]+", self.get(_PROVIDER)) if name]
        kinds = [name.rpartition(".")[2] for name in named]
        for kind, name in zip(kinds, named, strict=True):
            if kind not in _ANONYMOUS | _KEYS | _MACHINE:
                raise OptionError(
                    f"{PREFIX}{_PROVIDER} is {name[:200]!r}, a Hadoop class: set profile, or the "
                    "options key, secret and token"
                )
        if self.get(_ACCESS) and _KEYS.intersection(kinds):
            return "keys"
        # Whoever names it last means it for where nothing is found, which is an error here.
        if kinds and kinds[0] in _ANONYMOUS:
            return "anonymous"
        return "machine" if _MACHINE.intersection(kinds) else ""


def _warn(name: str, key: str) -> None:
    """Warn of a meaningless name for a credential, an endpoint or a key."""
    if name in _KNOWN:
        return
    of_family = name.startswith(_FAMILIES)
    near = get_close_matches(name, _KNOWN, n=1, cutoff=0.8 if of_family else _MISTYPED)
    if not (of_family or near):
        return
    hint = f": did you mean {PREFIX}{near[0]}?" if near else ""
    if name.startswith("assumed.role."):
        hint = ": set profile to one with role_arn"
    warnings.warn(f"{key[:100]} has no effect here{hint}", OptionWarning, stacklevel=4)
