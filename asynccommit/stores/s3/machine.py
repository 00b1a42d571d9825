"""Find region, endpoint and keys of this machine, as AWS tools do.

botocore's chain is used.

The chain consists of environment, profiles, single sign-on, web identity, assumed roles, containers
and the instance's own role. All of it blocks, reads files and may send requests to services, so it
runs in threads.
"""

from __future__ import annotations

from importlib import import_module
from threading import Lock
from typing import Any, NamedTuple

from asynccommit.stores.http.tokens import Holder, TokenError
from asynccommit.stores.s3.sign import SigningKeys

_NEEDED = (
    "botocore is needed to find credentials of this machine: pip install 'asynccommit[s3]', or "
    "give the options key and secret"
)
_NONE = (
    "no credentials were found: give the options key and secret, set AWS_ACCESS_KEY_ID or "
    "AWS_PROFILE, run aws sso login, or set anon=true for public data"
)
# Of botocore's errors, those that asking again does not help against.
_FINAL = (
    "NoCredentialsError",
    "PartialCredentialsError",
    "ProfileNotFound",
    "ConfigParseError",
    "InvalidConfigError",
    "InfiniteLoopConfigError",
    "UnknownCredentialError",
    "UnauthorizedSSOTokenError",
    "SSOTokenLoadError",
    "TokenRetrievalError",
    "MissingDependencyException",
)
# By ``method`` of botocore's credentials.
_KINDS = {
    "env": "AWS_SESSION_TOKEN in the environment",
    "shared-credentials-file": "the profile in the file of credentials",
    "config-file": "the profile in the file of the configuration",
    "assume-role": "the assumed role",
    "assume-role-with-web-identity": "the role of the web identity",
    "sso": "the login of aws sso",
    "iam-role": "the role of this instance",
    "container-role": "the role of this container",
    "custom-process": "the credential process",
}
_NEVER_AGAIN = ("AccessDenied", "ExpiredToken", "InvalidIdentityToken", "ValidationError")


class MachineConfig(NamedTuple):
    """The machine's configuration of the service; empty if unset."""

    region: str
    endpoint: str


class AwsMachine:
    """The configuration and the credentials of this machine.

    Every method blocks except ``stale``.

    Args:
        profile: the one to use; ``None`` for that of the environment.
    """

    def __init__(self, profile: str | None = None) -> None:
        self._profile = profile
        self._lock = Lock()
        self._session: Any = None
        self._credentials: Any = None

    def __repr__(self) -> str:
        return f"Machine({self._profile!r})"

    def config(self) -> MachineConfig:
        """Return the machine's configuration. Raises errors of botocore."""
        with self._lock:
            session = self._open()
            region = session.get_config_variable("region") or ""
            if session.get_config_variable("ignore_configured_endpoint_urls"):
                return MachineConfig(region, "")
            scoped, full = session.get_scoped_config(), session.full_config
            services = full.get("services", {}).get(scoped.get("services"), {})
            said = services.get("s3", {}) if isinstance(services, dict) else {}
            return MachineConfig(
                region, said.get("endpoint_url") or scoped.get("endpoint_url") or ""
            )

    def keys(self, *, anew: bool = False) -> SigningKeys:
        """Return keys that are good now, renewed if need be.

        Args:
            anew: look for them again from the beginning, in files too.

        Raises:
            TokenError: there are none.
            Exception: of botocore; see ``explain``.
        """
        with self._lock:
            if anew:
                self._session = self._credentials = None
            if self._credentials is None:
                self._credentials = self._open().get_credentials()
            if self._credentials is None:
                raise TokenError(_NONE, again=False)
            frozen = self._credentials.get_frozen_credentials()
            return SigningKeys(frozen.access_key, frozen.secret_key, frozen.token or "")

    @property
    def holder(self) -> Holder:
        """The identity of the keys, by botocore's name of their source."""
        method = str(getattr(self._credentials, "method", ""))
        kind = _KINDS.get(method) or f"this machine ({method or 'unknown source'})"
        return Holder(kind, "renew it (aws sso login, a new token), then resume")

    def stale(self) -> bool:
        """Return whether the keys should be renewed, without any request."""
        needed = getattr(self._credentials, "refresh_needed", None)
        return bool(needed()) if needed is not None else False

    def _open(self) -> Any:
        if self._session is None:
            try:
                session = import_module("botocore.session")
            except ImportError:
                raise TokenError(_NEEDED, again=False) from None
            self._session = session.Session(profile=self._profile)
        return self._session


def explain(error: Exception) -> TokenError:
    """Explain why something could not be found."""
    if isinstance(error, TokenError):
        return error
    if isinstance(error, TimeoutError):
        return TokenError("no credentials arrived in time", again=True)
    kind = type(error).__name__
    said = f"no credentials: {kind}: {error}"
    response = getattr(error, "response", None)
    code = response.get("Error", {}).get("Code", "") if isinstance(response, dict) else ""
    final = kind in _FINAL or code in _NEVER_AGAIN
    hint = "; run aws sso login" if "SSO" in kind else ""
    return TokenError(said + hint, again=not final)
