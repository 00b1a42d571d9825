"""Bearer tokens of Azure's identity service.

Such an object keeps and renews tokens itself; ``Renewal`` adds the rest.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from asynccommit.stores.adls.wire import SignedQuery
from asynccommit.stores.http.tokens import Fresh, Holder, Renewal, TokenError

# By the name of the class in azure.identity.
_KINDS = {
    "DefaultAzureCredential": "the default identity of this machine (DefaultAzureCredential)",
    "ManagedIdentityCredential": "the managed identity",
    "WorkloadIdentityCredential": "the workload identity",
    "ClientSecretCredential": "the service principal (client secret)",
    "CertificateCredential": "the service principal (certificate)",
    "ClientAssertionCredential": "the service principal (assertion)",
    "AzureCliCredential": "the login of az",
    "AzureDeveloperCliCredential": "the login of azd",
    "EnvironmentCredential": "the identity in the environment",
}

SCOPE = "https://storage.azure.com/.default"


class IdentitySource:
    """A source of tokens from a credential object of azure-identity.

    Any object with a compatible ``get_token`` works.

    Args:
        given: has ``get_token(scope)``, a coroutine or not, which gives ``token`` and
            ``expires_on``; ``None`` to use ``make``.
        make: makes the object, in a thread, when the first token is needed; the object is then
            closed here.
        secrets: secret texts that no error may show.
    """

    def __init__(
        self,
        given: Any,
        make: Callable[[], Any] | None,
        secrets: tuple[str, ...],
    ) -> None:
        self.given = given
        self.make = make
        self.secrets = secrets

    @property
    def holder(self) -> Holder:
        name = type(self.given).__name__
        kind = _KINDS.get(name) or f"the token provider {name}"
        return Holder(kind, "is it from the account's tenant, and meant for Azure Storage?")

    async def ask(self) -> Fresh:
        if self.given is None and self.make is not None:
            self.given = await asyncio.to_thread(self.make)
        get_token = self.given.get_token
        if inspect.iscoroutinefunction(get_token):
            token = await get_token(SCOPE)
        else:
            token = await asyncio.to_thread(get_token, SCOPE)
            token = await token if inspect.isawaitable(token) else token
        return Fresh(str(token.token), float(token.expires_on))

    def explain(self, error: Exception) -> TokenError:
        text = " ".join(str(error).split())
        names = {kind.__name__ for kind in type(error).__mro__}
        # Refused by the identity service, or no credential was found: as in azure.core.exceptions,
        # which need not be installed.
        final = "ClientAuthenticationError" in names or not names & {"AzureError", "OSError"}
        said = text or f"the credential gave {type(error).__name__}"
        return TokenError(f"no token: {said}", again=not final)

    async def aclose(self) -> None:
        if self.make is not None and self.given is not None:
            await self.given.close()


class AzureTokens(Renewal):
    """Bearer tokens of a credential object of azure-identity.

    Any object with a compatible ``get_token`` works.

    Args:
        source: the object; ``None`` to use ``make``.
        now: seconds since the epoch.
        make: see ``IdentitySource``; the same for ``secrets``.
        patience: seconds that the source may take; some sources would wait for minutes.
    """

    suffix = ""

    def __init__(
        self,
        source: Any,
        now: Callable[[], float],
        *,
        make: Callable[[], Any] | None = None,
        secrets: tuple[str, ...] = (),
        patience: float = 60.0,
    ) -> None:
        self.identity = IdentitySource(source, make, secrets)
        super().__init__(self.identity, now, patience=patience)

    def authorize(
        self, verb: str, path: str, query: SignedQuery, headers: dict[str, str], length: int
    ) -> None:
        headers["authorization"] = self.header
