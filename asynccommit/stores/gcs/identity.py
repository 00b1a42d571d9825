"""Find the Google identity in options, files and on the machine.

No token is requested here.

The order of application-default credentials is google-auth's: the file that
``GOOGLE_APPLICATION_CREDENTIALS`` names, the file that ``gcloud auth application-default login``
writes, the metadata server of the machine.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal
from urllib.parse import urlsplit

import orjson

from asynccommit.errors import OptionError, UnsupportedError
from asynccommit.stores.http.base import is_loopback

SCOPE = "https://www.googleapis.com/auth/"
VARIABLE = "GOOGLE_APPLICATION_CREDENTIALS"

_CLOUD = SCOPE + "cloud-platform"  # what impersonation asks for
_INSTEAD = "give the option token, a credentials object of google.auth, instead"
_NOTHING = (
    "no credentials: run gcloud auth application-default login, set "
    f"{VARIABLE} to a file of credentials, give the option token, or set token='anon' for public "
    "data"
)
_NEEDED = {
    "service_account": ("client_email", "private_key"),
    "authorized_user": ("client_id", "client_secret", "refresh_token"),
    "external_account": ("audience", "credential_source", "subject_token_type", "token_url"),
    "impersonated_service_account": ("service_account_impersonation_url", "source_credentials"),
    "metadata": (),
}
_SECRET = ("private_key", "refresh_token", "client_secret")
_URLS = ("token_uri", "token_url", "service_account_impersonation_url")
_BEARER = re.compile(r"[A-Za-z0-9._~+/-]+=*")
_PATH = re.compile(r"[/~.]|[A-Za-z]:\\|.*[.\\]json\Z", re.IGNORECASE)
_METADATA = "metadata.google.internal"
_PRODUCT = "/sys/class/dmi/id/product_name"
_LARGEST = 1 << 20  # bytes of a file of credentials


@dataclass(frozen=True, slots=True)
class Raw:
    """A token that was given directly; its expiry is unknown."""

    token: str = field(repr=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The token."""
        return (self.token,)


@dataclass(frozen=True, slots=True)
class GoogleAccount:
    """An account that gcloud-aio-auth can get tokens of.

    Attributes:
        kind: ``service_account``, ``authorized_user``, ``external_account`` or ``metadata``.
        data: the content of a file of credentials; empty for ``metadata``.
        where: where it was found, for messages.
        scope: what tokens are asked for.
        principal: service account to act as; empty for none.
        delegates: who stand between.
        token_url: where tokens are asked for; empty for the place that ``data`` names.
        last_resort: the message if nothing answers; empty if it was requested by name.
    """

    kind: str
    data: Mapping[str, Any] = field(repr=False)
    where: str
    scope: str
    principal: str = ""
    delegates: tuple[str, ...] = ()
    token_url: str = ""
    last_resort: str = ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secrets in ``data``, which no error may show."""
        values = (self.data.get(name) for name in _SECRET)
        return tuple(value for value in values if isinstance(value, str))

    def file(self) -> io.StringIO:
        """Return ``data`` as gcloud-aio-auth reads it."""
        return io.StringIO(orjson.dumps(self.data).decode())


@dataclass(frozen=True, slots=True)
class Identity:
    """The configured identity before any file is read.

    Attributes:
        kind: ``default`` for the machine's credentials, ``machine`` for its metadata server,
            ``text`` for a path, JSON or a bearer token, ``file`` for a path, ``data`` for its
            content.
        scope: the scopes that tokens are requested for.
        text: the path, JSON or token.
        data: the content.
        where: the origin of the setting, for messages.
        principal: service account to impersonate; empty for none.
        token_url: URL that replaces the token endpoint.
    """

    kind: Literal["default", "machine", "text", "file", "data"]
    scope: str
    text: str = field(default="", repr=False)
    data: Mapping[str, Any] = field(default_factory=dict, repr=False)
    where: str = "token"
    principal: str = ""
    token_url: str = ""

    def check(self) -> None:
        """Raise ``OptionError`` or ``UnsupportedError`` without reading files."""
        if self.kind == "data":
            self._account(self.data, self.where)

    def load(self, environ: Mapping[str, str]) -> GoogleAccount | Raw:
        """Load the identity; this reads files.

        Raises:
            OptionError: a file is missing or contains no credentials.
            UnsupportedError: the kind of credentials is unknown.
        """
        match self.kind:
            case "machine":
                return self._machine(environ, "")
            case "data":
                account = self._account(self.data, self.where)
            case "file":
                account = self._of_file(os.path.expanduser(self.text), self.where)
            case "text":
                if isinstance(found := self._of_text(), Raw):
                    return found
                account = found
            case _:
                account = self._default(environ)
        if account.kind == "service_account":
            _check_key(account)
        return account

    def _of_text(self) -> GoogleAccount | Raw:
        text, where = self.text, self.where
        if text.startswith("{"):
            return self._account(_parse(text.encode(), where), where)
        path = os.path.expanduser(text)
        if os.path.exists(path):
            return self._of_file(path, where)
        if _PATH.match(text) or os.sep != "/":
            raise OptionError(f"{where} is {text[:300]!r}, but there is no such file")
        if not _BEARER.fullmatch(text):
            raise OptionError(
                f"{where} is neither a file, nor JSON, nor a bearer token, which has only "
                "letters, digits and ._~+/-=: give a path, or the output of gcloud auth "
                "print-access-token"
            )
        return Raw(text)

    def _default(self, environ: Mapping[str, str]) -> GoogleAccount:
        if path := environ.get(VARIABLE, "").strip():
            return self._of_file(path, VARIABLE)
        path = os.path.join(_folder(environ), "application_default_credentials.json")
        if os.path.exists(path):
            return self._of_file(path, "application-default credentials")
        if environ.get("NO_GCE_CHECK", "").lower() == "true":
            raise OptionError(_NOTHING)
        return self._machine(environ, "" if _is_googles(environ) else _NOTHING)

    def _machine(self, environ: Mapping[str, str], last_resort: str) -> GoogleAccount:
        named = environ.get("GCE_METADATA_HOST") or environ.get("GCE_METADATA_ROOT")
        host = named or _METADATA
        url = f"http://{host}/computeMetadata/v1/instance/service-accounts/default/token"
        scope = _CLOUD if self.principal else self.scope
        where = f"metadata server {host}"
        return GoogleAccount("metadata", {}, where, scope, self.principal, (), url, last_resort)

    def _of_file(self, path: str, where: str) -> GoogleAccount:
        where = f"{where}, {path[:300]}"
        try:
            with open(path, "rb") as file:
                content = file.read(_LARGEST)
        except OSError as error:
            raise OptionError(f"{where}: {error.strerror or type(error).__name__}") from None
        return self._account(_parse(content, where), where)

    def _account(self, data: Mapping[str, Any], where: str) -> GoogleAccount:
        kind = _kind(data, where)
        _check_whole(data, kind, where)
        delegates = tuple(map(str, data.get("delegates") or ()))
        if kind == "impersonated_service_account":
            url = data["service_account_impersonation_url"]
            data = {**data["source_credentials"], "service_account_impersonation_url": url}
            kind = _kind(data, where)
            _check_whole(data, kind, where)
        if kind == "service_account":  # a key that was in a variable has its line ends written out
            data = {**data, "private_key": data["private_key"].replace("\\n", "\n")}
        if kind == "external_account":
            data = {**data, "credential_source": _subject(data["credential_source"], where)}
        acts = self.principal or data.get("service_account_impersonation_url")
        scope = _CLOUD if acts else self.scope
        url = self.token_url if kind != "external_account" else ""
        return GoogleAccount(kind, data, where, scope, self.principal, delegates, url)


def _parse(content: bytes, where: str) -> Mapping[str, Any]:
    try:
        found = orjson.loads(content)
    except ValueError:  # its text has the content
        found = None
    if not isinstance(found, dict):
        raise OptionError(f"{where} is not a JSON credentials file from Google's console")
    return found


def _kind(data: Mapping[str, Any], where: str) -> str:
    kind = data.get("type")
    if kind is None:  # as old files have it
        kind = next((_ for _ in _NEEDED if _NEEDED[_] and set(_NEEDED[_]) <= data.keys()), None)
    if kind is None:
        raise OptionError(f"{where} are not credentials: the type is missing")
    if kind not in _NEEDED or kind == "metadata":
        raise UnsupportedError(
            f"{where}: credentials of type {str(kind)[:100]!r} are not supported: {_INSTEAD}"
        )
    return str(kind)


def _check_whole(data: Mapping[str, Any], kind: str, where: str) -> None:
    if missing := [name for name in _NEEDED[kind] if not data.get(name)]:
        raise OptionError(f"{where} lacks {' and '.join(missing)}: give the complete file")
    nested = ("source_credentials", "credential_source")
    for name in _NEEDED[kind]:
        if not isinstance(data[name], dict if name in nested else str):
            raise OptionError(f"{where}: {name} has the wrong type: give the original file")
    for name in _URLS:
        _check_url(data.get(name), f"{where}: {name}")


def _check_url(url: object, what: str) -> None:
    if url is None:
        return
    try:
        found = urlsplit(str(url))
        fine = found.scheme == "https" or (found.scheme == "http" and is_loopback(found.netloc))
    except ValueError:
        fine = False
    if not fine:
        raise OptionError(f"{what} is not an https URL, but secrets are sent there")


def _check_key(account: GoogleAccount) -> None:
    """Raise ``OptionError`` if the private key is invalid, without its text."""
    serialization = import_module("cryptography.hazmat.primitives.serialization")
    try:
        serialization.load_pem_private_key(account.data["private_key"].encode(), None)
    except Exception:  # of many kinds, and about a secret
        fine = False
    else:
        fine = True
    if not fine:
        raise OptionError(
            f"{account.where}: private_key cannot be read: give all of it, from -----BEGIN "
            "PRIVATE KEY----- to -----END PRIVATE KEY-----, with its line ends"
        )


def _subject(source: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the source of another identity provider's token.

    The form is the one that the library expects.
    """
    if str(source.get("environment_id", "")).startswith("aws"):
        raise UnsupportedError(
            f"{where}: workload identity federation with AWS is not supported: {_INSTEAD}"
        )
    for name in ("executable", "certificate"):
        if name in source:
            raise UnsupportedError(
                f"{where}: credential_source with {name} is not supported: {_INSTEAD}"
            )
    kinds = [name for name in ("file", "url", "environment_id") if source.get(name)]
    if not kinds:
        raise OptionError(f"{where}: credential_source names neither a file nor a url")
    if kinds[0] == "file":
        # As a URL, because the library would read it while the loop waits, and no JSON of it.
        return {**source, "type": "url", "url": f"file:{source['file']}"}
    return {**source, "type": "environment" if kinds[0] == "environment_id" else "url"}


def _folder(environ: Mapping[str, str]) -> str:
    """Return the directory of gcloud's files."""
    if folder := environ.get("CLOUDSDK_CONFIG"):
        return folder
    if os.name == "nt":
        return os.path.join(environ.get("APPDATA", "C:\\"), "gcloud")
    return os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".config", "gcloud")


def _is_googles(environ: Mapping[str, str]) -> bool:
    """Return whether this machine is Google's.

    On such a machine a silent metadata server is a fault.
    """
    if environ.get("GCE_METADATA_HOST") or environ.get("GCE_METADATA_ROOT"):
        return True
    try:
        with open(_PRODUCT, encoding="ascii", errors="replace") as file:
            return file.read(100).startswith("Google")
    except OSError:
        return False
