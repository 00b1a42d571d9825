"""The client of a flat account: the Blob endpoint.

A block list is signed with the moment after which the service refuses it. Nothing else keeps a
list that is late from taking effect: uncommitted blocks cannot be deleted.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import unquote

from asynccommit.errors import RejectedError
from asynccommit.runtime.host import Host
from asynccommit.stores.adls.client import AdlsClient
from asynccommit.stores.adls.credentials import SharedKey
from asynccommit.stores.adls.errors import AdlsRequest
from asynccommit.stores.adls.options import AzureSettings
from asynccommit.stores.adls.wire import VERSION, SignedQuery, parse_date, query
from asynccommit.stores.grant import check_grant
from asynccommit.stores.http.base import Response, Transport, TransportError
from asynccommit.stores.http.client import SILENCE, SMALL
from asynccommit.stores.http.tokens import TokenError

LATE = 30.0
"""Seconds in which the service takes a block list, from the moment at which it is signed."""
LONGEST = 1025
"""Characters of a path: a name has 1,024, without the slash at its beginning."""
_ACCOUNT = query(restype="account", comp="properties")
_DATE = 1.0  # seconds that a date may be behind: it has no fractions


class FlatBlobClient(AdlsClient):
    """Sends the requests of one container of a flat account.

    The first one is preceded by a question: is the account flat? An identity that may not ask is
    believed.

    Args: see ``AdlsClient``.
    """

    def __init__(self, settings: AzureSettings, host: Host, transport: Transport) -> None:
        place = replace(settings.place, origin=settings.place.blob_origin)
        super().__init__(replace(settings, place=place, hierarchical=None), host, transport)
        self._account = place.prefix + "/"
        self._clock = host.clock
        self._ahead = host.now() - host.clock()  # of the service's time before the clock's

    @property
    def late(self) -> float | None:
        """Seconds after which a block list has no effect; ``None`` if unknown.

        Only the account key can sign a moment for one request.
        """
        return LATE + _DATE if isinstance(self._credential, SharedKey) else None

    def encode(self, request: AdlsRequest, path: str) -> str:
        """See ``HttpClient.encode``; a name that is too long is refused too."""
        if len(path) > LONGEST:
            text = f"the name {path[1:81]!r}... has more than {LONGEST - 1} characters"
            raise RejectedError(request.op, path, text)
        return super().encode(request, path)

    async def ask_in_time(
        self,
        request: AdlsRequest,
        path: str,
        asked: dict[str, str | int],
        headers: dict[str, str],
        body: bytes,
    ) -> Response:
        """Send a PUT that the service refuses once it is late; see ``ask``."""
        credential = self._credential
        if not isinstance(credential, SharedKey):
            return await self.ask(request, "PUT", path, query(**asked), headers, body)
        if not self._hierarchical:
            await self._need_directories(request)
        headers["x-ms-version"] = VERSION
        check_grant()  # no moment passes between this and the signature
        until = datetime.fromtimestamp(int(self._service_time() + LATE), UTC)
        blob = unquote(path[len(self.place.prefix) :])
        signed = credential.sas(f"/blob/{self.place.account}{blob}", "cw", until)
        url = f"{self._origin}{path}?{query(**asked).text}&{query(**signed).text}"
        try:
            answer = await self._send("PUT", url, headers, body, limit=SMALL)
        except SILENCE as error:
            raise self.judge.translate(request, error) from error
        self._learn_time(answer)
        return answer

    async def _exchange(
        self,
        verb: str,
        path: str,
        query: SignedQuery,
        headers: dict[str, str],
        body: bytes,
        limit: int,
    ) -> Response:
        answer = await super()._exchange(verb, path, query, headers, body, limit)
        self._learn_time(answer)
        return answer

    def _service_time(self) -> float:
        """Return the time of the service, or an earlier one."""
        return self._ahead + self._clock()

    def _learn_time(self, answer: Response) -> None:
        """Learn the service's time: the date of a response is an earlier one."""
        there = parse_date(answer.headers.get("date"))
        if there and "x-ms-request-id" in answer.headers:
            self._ahead = there - self._clock()

    async def _probe(self) -> Response | TransportError | TokenError | ValueError:
        """Ask what kind of account it is."""
        try:
            return await self._exchange("HEAD", self._account, _ACCOUNT, {}, b"", SMALL)
        except SILENCE as error:
            return error

    def _has_directories(self, request: AdlsRequest, answer: Response) -> bool:
        """Return true, so that requests are sent, or raise for directories."""
        if answer.headers.get("x-ms-is-hns-enabled") == "true":
            raise RejectedError(
                request.op,
                request.path,
                f"the account {self.place.account!r} has a hierarchical namespace, where a rename "
                "is one request: leave out fs.azure.account.hns.enabled=false",
            )
        if answer.status >= 500 or "x-ms-request-id" not in answer.headers:
            raise self.judge.translate(request, answer)
        return True
