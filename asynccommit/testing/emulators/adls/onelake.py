"""Answers of OneLake that differ from those of a storage account."""

from __future__ import annotations

from collections.abc import Collection

from asynccommit.testing.emulators.adls.auth import AccountKeys
from asynccommit.testing.emulators.adls.call import AdlsCall
from asynccommit.testing.models.adls.refusals import refusal

ACCOUNT = "onelake"
IGNORED = (
    *("x-ms-owner", "x-ms-group", "x-ms-permissions", "x-ms-acl", "x-ms-acls"),
    *("x-ms-encryption-key", "x-ms-encryption-algorithm", "x-ms-access-tier"),
)
"""The headers that OneLake ignores and names; the page writes ``x-ms-acls`` for the fourth."""


def take_headers(call: AdlsCall, ignored: Collection[str]) -> list[str]:
    """Drop the headers that are ignored, and name them in the answer.

    The page shows no such answer: that commas separate the names is inferred. Returns the names.
    """
    found = [name for name in ignored if name in call.headers]
    for name in found:
        del call.headers[name]
    if found:
        call.more += f"x-ms-rejected-headers: {','.join(found)}\r\n"
    return found


def check_level(call: AdlsCall) -> None:
    """Refuse all of a tenant or workspace but HEAD and a listing."""
    query = call.query
    lists = query.get("comp") == "list" or query.get("resource") == "filesystem"
    if call.path or call.method == "HEAD" or (call.method == "GET" and call.filesystem and lists):
        return
    raise refusal("UnsupportedHttpVerb")


class TokensOnly(AccountKeys):
    """Credentials of OneLake: tokens of Entra ID, no keys.

    A SAS with a user's delegation key is documented, and not served here.
    """

    __slots__ = ()

    def check(self, call: AdlsCall, op: str, now: float) -> None:
        """Raise ``Refusal`` unless the request has a valid token."""
        scheme = call.headers.get("authorization", "").partition(" ")[0].lower()
        if scheme not in ("", "bearer") or "sig" in call.query:
            raise refusal("AuthenticationFailed")
        super().check(call, op, now)
