"""What is added to a request, and that it stays secret."""

from __future__ import annotations

import math

import pytest

from asynccommit.stores.gcs.credentials import GcsAnonymous, GcsCredential, GcsTokens
from asynccommit.stores.http.tokens import Fresh, TokenError


class Given:
    """A source with one token."""

    secrets = ("hunter2",)

    async def ask(self) -> Fresh:
        """Give it."""
        return Fresh("ya29.token", 5000.0)

    def explain(self, error: Exception) -> TokenError:
        """There is nothing to explain."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Nothing is held."""


async def test_nobody_adds_nothing() -> None:
    """What is public needs no more; nothing is ever renewed."""
    credential: GcsCredential = GcsAnonymous()
    headers: dict[str, str] = {}
    credential.authorize(headers)
    await credential.renew()

    assert headers == {}
    assert credential.anonymous
    assert credential.renew_at == math.inf
    assert not await credential.refused(headers)
    assert credential.hide("text") == "text"
    assert repr(credential) == "GcsAnonymous()"
    await credential.aclose()


async def test_a_token_is_a_header() -> None:
    """As soon as there is one, and of one kind only."""
    credential: GcsCredential = GcsTokens(Given(), lambda: 1000.0)
    assert credential.renew_at <= 1000.0
    await credential.renew()
    headers = {"x": "y"}
    credential.authorize(headers)

    assert headers == {"x": "y", "authorization": "Bearer ya29.token"}
    assert not credential.anonymous
    assert credential.renew_at == 4700.0
    await credential.aclose()


@pytest.mark.parametrize("text", ["hunter2", "ya29.token", "Bearer ya29.token!"])
async def test_secrets_are_hidden(text: str) -> None:
    """Those of the source and the token itself, and a repr has none."""
    credential = GcsTokens(Given(), lambda: 1000.0)
    await credential.renew()

    assert "***" in credential.hide(text)
    assert "ya29" not in credential.hide(text) + repr(credential)
