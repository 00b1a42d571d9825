"""One door to a service: what the clients of all stores share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NoReturn

from asynccommit.errors import StoreError
from asynccommit.runtime.host import Host
from asynccommit.stores.http.base import Response, Transport, TransportError
from asynccommit.stores.http.errors import Answer, ErrorTranslator, R
from asynccommit.stores.http.tokens import TokenError

SMALL = 1 << 16  # most bytes of an answer that carries no data
SILENCE = (TransportError, TokenError, ValueError)
"""The exceptions that an exchange raises, for the translator."""


class HttpClient(Generic[R]):
    """A sender of one store's requests; subclasses authorise them.

    Args:
        host: its clock.
        transport: what sends.
        judge: the translator of errors.
        encode: percent-encodes a path; raises ``ValueError``.
    """

    def __init__(
        self,
        host: Host,
        transport: Transport,
        judge: ErrorTranslator[R],
        encode: Callable[[str], str],
    ) -> None:
        self.judge = judge
        self._encode = encode
        self._now = host.now
        self._send = transport.send
        self._transport = transport

    def encode(self, request: R, path: str) -> str:
        """Return ``path`` percent-encoded. Raises ``RejectedError``."""
        try:
            return self._encode(path)
        except ValueError as error:
            raise self.judge.translate(request, error) from None

    def need(self, request: R, answer: Response, *expected: int) -> None:
        """Raise what ``answer`` means, unless its status is expected."""
        if answer.status not in expected:
            raise self.judge.translate(request, answer)

    def error(self, request: R, answer: Answer) -> StoreError:
        """Translate an error response into an error."""
        return self.judge.translate(request, answer)

    def refuse(self, request: R, error: ValueError) -> NoReturn:
        """Raise the error for a request that cannot be built."""
        raise self.judge.translate(request, error) from None

    def unread(self, request: R, error: ValueError) -> StoreError:
        """Return the error for an answer that cannot be read."""
        return self.judge.unread(request, error)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()
