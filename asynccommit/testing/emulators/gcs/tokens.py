"""Authenticate bearer tokens; without any, all callers pass."""

from __future__ import annotations

from dataclasses import dataclass, field

from asynccommit.testing.emulators.gcs.call import GcsCall
from asynccommit.testing.models.gcs.model import GcsRefusal, refuse

_CHALLENGE = 'Bearer realm="https://accounts.google.com/"'


@dataclass(slots=True)
class AcceptedTokens:
    """The accepted credentials.

    Attributes:
        tokens: valid bearer tokens; ``None`` if any token is valid and none is needed.
        expired: bearer tokens that have expired.
    """

    tokens: set[str] | None = field(default=None, repr=False)
    expired: set[str] = field(default_factory=set, repr=False)

    def check(self, call: GcsCall) -> None:
        """Raise ``GcsRefusal`` (401) unless the caller is authenticated."""
        header = call.headers.get("authorization")
        if header is None:
            if self.tokens is not None:
                raise _anonymous(call)
            return
        if self.tokens is None and not self.expired:
            return
        scheme, _, token = header.partition(" ")
        known = self.tokens is None or token in self.tokens
        if scheme.lower() != "bearer" or not known or token in self.expired:
            raise refuse(
                "authError",
                "Invalid Credentials",
                location_type="header",
                location="Authorization",
                headers={"WWW-Authenticate": f"{_CHALLENGE}, error=invalid_token"},
            )


def _anonymous(call: GcsCall) -> GcsRefusal:
    permission = call.route.method
    message = (
        f"Anonymous caller does not have {permission} access to the Google Cloud Storage "
        f"resource. Permission '{permission}' denied on resource (or it may not exist)."
    )
    return GcsRefusal(
        401,
        "required",
        message,
        location_type="header",
        location="Authorization",
        headers={"WWW-Authenticate": _CHALLENGE},
    )
