"""Hadoop's options of Google Cloud Storage, from its configuration.

The keys are those of Google's connector and of Hadoop's own, also those that the connector has
since renamed, because configurations still have them. Credentials and proxies may be named for
all of Google's connectors, ``google.cloud.auth.type``. The rest of ``fs.gs.`` is about other
things than these and passed over.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from difflib import get_close_matches
from functools import partial
from typing import Any, Literal

from asynccommit.errors import OptionError
from asynccommit.options.job import OptionWarning
from asynccommit.stores.gcs.identity import Identity
from asynccommit.stores.http.options import HadoopOptions

PREFIX = "fs.gs."
SHARED = "google.cloud."

_AUTH = "auth.type"
_FILE = "auth.service.account.json.keyfile"
_FEDERATED = "auth.workload.identity.federation.credential.config.file"
_EMAIL = "auth.service.account.email"
_KEY = "auth.service.account.private.key"
_KEY_ID = "auth.service.account.private.key.id"
_USER = ("auth.client.id", "auth.client.secret", "auth.refresh.token")
_AS = "auth.impersonation.service.account"
_AS_USER, _AS_GROUP = f"{_AS}.for.user.", f"{_AS}.for.group."
_HEADERS = "storage.http.headers."
_INSTEAD = "give the option token, a credentials object of google.auth, instead"

# Where a wrong name would mean other credentials, or none.
_FAMILIES = ("auth.", "encryption.", "requester.pays.")
_KNOWN = frozenset(
    {
        *(_AUTH, _FILE, _FEDERATED, _EMAIL, _KEY, _KEY_ID, *_USER, _AS),
        "auth.access.token.provider",
        "auth.access.token.provider.impl",
        "auth.service.account.enable",
        "auth.service.account.keyfile",
        "auth.null.enable",
        "encryption.algorithm",
        "encryption.key",
        "encryption.key.hash",
        "requester.pays.mode",
        "requester.pays.project.id",
        "requester.pays.buckets",
    }
)
_TYPES = (
    "APPLICATION_DEFAULT",
    "COMPUTE_ENGINE",
    "SERVICE_ACCOUNT_JSON_KEYFILE",
    "UNAUTHENTICATED",
    "USER_CREDENTIALS",
    "WORKLOAD_IDENTITY_FEDERATION_CREDENTIAL_CONFIG_FILE",
)
_FOREVER = 86400.0  # where Hadoop has 0 for no end
_PROXY = re.compile(r"(?:http://)?((?:[\w.-]+|\[[0-9a-f:.]+\]):[0-9]{1,5})/?", re.ASCII | re.I)


class GcsConnectorOptions(HadoopOptions):
    """Options whose names begin with ``fs.gs.`` or ``google.cloud.``."""

    prefixes = (PREFIX, SHARED)
    timeouts = ("http.connect-timeout", "http.read-timeout", "")
    agent = "application.name.suffix"
    endless = _FOREVER

    def __init__(self, conf: Mapping[str, str]) -> None:
        super().__init__(conf)
        for key in conf:
            _warn(key)

    def count(self, name: str) -> int | None:
        """Return the whole number ``name``; ``None`` if it is not given."""
        value = self.get(name)
        if value and not (value.isascii() and value.isdigit() and len(value) < 31 and int(value)):
            raise OptionError(
                f"{PREFIX}{name} is {value[:100]!r}: expected a whole number of at least 1"
            )
        return int(value) if value else None

    def size(self, name: str, most: int = 1 << 50) -> int | None:
        """Return ``name`` in bytes, ``most`` at most; ``None`` if it is not given."""
        return self.sized(name, most, "bytes, or a size such as 24m")

    def headers(self) -> dict[str, str]:
        """Return what ``fs.gs.storage.http.headers.NAME`` adds to every request."""
        start = PREFIX + _HEADERS
        return {
            key.removeprefix(start): value
            for key, value in self._conf.items()
            if key.startswith(start)
        }

    def proxy(self) -> str | None:
        """Return the URL of the proxy; ``None`` if none is given."""
        address = self.get("proxy.address")
        if not address:
            return None
        found = _PROXY.fullmatch(address)
        if not found:  # it may have a password
            raise OptionError(f"{PREFIX}proxy.address is not HOST:PORT")
        return f"http://{self.proxy_user()}{found[1]}"

    def payer(self, bucket: str) -> str | bool:
        """Return the project that pays for ``bucket``; true means the job's."""
        mode = self.get("requester.pays.mode").upper() or "DISABLED"
        buckets = [name.strip() for name in self.get("requester.pays.buckets").split(",")]
        match mode:
            case "ENABLED":
                pays = True
            case "CUSTOM":
                pays = bucket in buckets
            case "DISABLED":
                pays = False
            case "AUTO":
                pays = False
                warnings.warn(
                    f"{PREFIX}requester.pays.mode=AUTO is not supported, and no project is "
                    "charged: set ENABLED, or requester_pays=PROJECT, if the bucket needs it",
                    OptionWarning,
                    stacklevel=2,
                )
            case _:
                raise OptionError(
                    f"{PREFIX}requester.pays.mode is {mode[:100]!r}: "
                    "expected DISABLED, ENABLED or CUSTOM"
                )
        return pays and (self.get("requester.pays.project.id") or True)

    # --- credentials -------------------------------------------------------------------------

    def identity(self, scope: str, user: str) -> Identity | Literal["anonymous"] | None:
        """Return the identity for requests, or ``None`` if it is not configured.

        Args:
            scope: the scopes that tokens are requested for.
            user: the user of the job, for impersonation.

        Raises:
            OptionError: the identity is incomplete, or of a kind that only Hadoop has.
        """
        kind = self._kind()
        if kind is None and not self._principal(user):
            return None
        if kind == "UNAUTHENTICATED":
            return "anonymous"
        who, url = self._principal(user), self.get("token.server.url")
        make = partial(Identity, scope=scope, principal=who, token_url=url)
        match kind:
            case "APPLICATION_DEFAULT" | None:
                return make("default")
            case "COMPUTE_ENGINE":
                return make("machine")
            case "USER_CREDENTIALS":
                return make("data", data=self._user(), where="fs.gs.auth")
            case "private key":
                return make("data", data=self._private_key(), where="fs.gs.auth")
        name = _FILE if kind == "SERVICE_ACCOUNT_JSON_KEYFILE" else _FEDERATED
        return make("file", text=self._need(name, kind), where=PREFIX + name)

    def _kind(self) -> str | None:
        """Return the authentication type that is set, or follows from options."""
        kind = self.get(_AUTH).upper()
        if kind == "ACCESS_TOKEN_PROVIDER" or (not kind and self._has_provider()):
            raise OptionError(
                f"{PREFIX}{_AUTH} is ACCESS_TOKEN_PROVIDER, which runs Hadoop's classes: {_INSTEAD}"
            )
        if kind and kind not in _TYPES:
            raise OptionError(
                f"{PREFIX}{_AUTH} is {kind[:100]!r}: expected one of {', '.join(_TYPES)}"
            )
        if kind:
            return kind
        if self.flag("auth.null.enable"):
            return "UNAUTHENTICATED"
        if self.get("auth.service.account.keyfile"):
            raise OptionError(
                f"{PREFIX}auth.service.account.keyfile is a PKCS12 file, which Google no longer "
                f"supports: create a JSON key and set {PREFIX}{_FILE}"
            )
        given = {
            _FILE: "SERVICE_ACCOUNT_JSON_KEYFILE",
            _KEY: "private key",
            _FEDERATED: "WORKLOAD_IDENTITY_FEDERATION_CREDENTIAL_CONFIG_FILE",
            _USER[2]: "USER_CREDENTIALS",
        }
        return next((kind for name, kind in given.items() if self.get(name)), None)

    def _has_provider(self) -> bool:
        return bool(
            self.get("auth.access.token.provider") or self.get("auth.access.token.provider.impl")
        )

    def _user(self) -> dict[str, Any]:
        values = (self._need(name, "USER_CREDENTIALS") for name in _USER)
        names = ("client_id", "client_secret", "refresh_token")
        return {"type": "authorized_user", **dict(zip(names, values, strict=True))}

    def _private_key(self) -> dict[str, Any]:
        return {
            "type": "service_account",
            "client_email": self._need(_EMAIL, "a private key"),
            "private_key": self.get(_KEY),
            "private_key_id": self.get(_KEY_ID),
        }

    def _principal(self, user: str) -> str:
        """Return the service account to act as, as Google's connector chooses it."""
        if mine := self.get(_AS_USER + user) if user else "":
            return mine
        if any(key.startswith((PREFIX + _AS_GROUP, SHARED + _AS_GROUP)) for key in self._conf):
            raise OptionError(
                f"{PREFIX}{_AS_GROUP}* needs Hadoop's groups: set {PREFIX}{_AS} instead"
            )
        return self.get(_AS)

    def _need(self, name: str, kind: str) -> str:
        value = self.get(name)
        if not value:
            raise OptionError(f"{PREFIX}{_AUTH} is {kind}, but {PREFIX}{name} is missing")
        return value


def _warn(key: str) -> None:
    """Warn of a name that means nothing where it was to mean a credential."""
    name = key.removeprefix(PREFIX).removeprefix(SHARED)
    effective = name in _KNOWN or name.startswith((_AS_USER, _AS_GROUP))
    if effective or not name.startswith(_FAMILIES):
        return
    near = get_close_matches(name, _KNOWN, n=1, cutoff=0.8)
    hint = f": did you mean {PREFIX}{near[0]}?" if near else ""
    warnings.warn(f"{key[:100]} has no effect here{hint}", OptionWarning, stacklevel=4)
