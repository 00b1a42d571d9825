"""Credentials of azure-identity: which one, with what, and without retries of its own."""

from __future__ import annotations

import asyncio
import sys

import pytest

from asynccommit.errors import OptionError, UnsupportedError
from asynccommit.stores.adls.identity import Application, AzureMachine, default_tokens
from asynccommit.stores.adls.tokens import AzureTokens
from asynccommit.stores.http.tokens import TokenError


def now() -> float:
    """Return some time."""
    return 1_000_000.0


@pytest.mark.parametrize(
    "tokens, kind",
    [
        (Application("tenant", "client", "secret").tokens(now), "ClientSecretCredential"),
        (
            Application("tenant", "client", "secret", "login.microsoftonline.us").tokens(now),
            "ClientSecretCredential",
        ),
        (
            AzureMachine("ManagedIdentityCredential", {"client_id": "c"}).tokens(now),
            "ManagedIdentityCredential",
        ),
        (
            default_tokens({"exclude_cli_credential": True, "client_id": "c"}, now),
            "DefaultAzureCredential",
        ),
    ],
    ids=["application", "other cloud", "machine", "default"],
)
async def test_a_credential_is_made_and_closed(tokens: AzureTokens, kind: str) -> None:
    """Off the loop, because it blocks; nothing is asked of the network for that."""
    assert tokens.identity.make is not None
    tokens.identity.given = await asyncio.to_thread(tokens.identity.make)

    assert type(tokens.identity.given).__name__ == kind
    await tokens.aclose()


async def test_the_identity_service_is_asked_once() -> None:
    """That it cannot be reached may pass; trying again is left to the request that needs it."""
    connections = []

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        authority = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        tokens = Application("tenant", "client", "hunter2", authority).tokens(now)
        with pytest.raises(TokenError) as caught:
            await tokens.renew()
        await tokens.aclose()

    assert len(connections) == 1
    assert caught.value.again
    assert "hunter2" not in caught.value.detail


def test_a_tenant_that_is_none_is_refused() -> None:
    """The message names it, and not the secret."""
    with pytest.raises(OptionError, match="'no tenant at all' is not a tenant") as caught:
        Application("no tenant at all", "client", "hunter2").tokens(now)
    assert "hunter2" not in str(caught.value)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what installs it, and what does without."""
    monkeypatch.setitem(sys.modules, "azure.identity", None)

    with pytest.raises(UnsupportedError, match=r"asynccommit\[adls\].*account_key"):
        default_tokens({}, now)


def test_no_repr_shows_the_secret() -> None:
    """Neither of the options nor of what is made from them."""
    assert "hunter2" not in repr(Application("t", "c", "hunter2"))
