"""The client of a storage account: authorise, send once, check.

Every request to the account passes through this module.
"""

from __future__ import annotations

from collections.abc import Mapping

from asynccommit.errors import DeniedError, RejectedError
from asynccommit.runtime.host import Host
from asynccommit.stores.adls.credentials import AdlsCredential
from asynccommit.stores.adls.errors import AdlsErrorTranslator, AdlsRequest, explain
from asynccommit.stores.adls.options import AzureSettings
from asynccommit.stores.adls.wire import VERSION, SignedQuery, encode, query
from asynccommit.stores.grant import check_grant
from asynccommit.stores.http.base import READS, Response, Transport, TransportError
from asynccommit.stores.http.client import SILENCE, SMALL, HttpClient
from asynccommit.stores.http.tokens import Flight, TokenError

_ACCESS = query(action="getAccessControl", upn="false")
_CONTAINER = query(resource="filesystem")

_REJECTED = "x-ms-rejected-headers"
_HARMLESS = frozenset({"content-type", "x-ms-version"})
_MANAGED = 2  # levels of OneLake that Fabric manages: an item, and the folders in it
MANAGED = (
    "Fabric makes and deletes OneLake's items and the folders in them: write below one of those, "
    "as in ITEM.Lakehouse/Files/DIRECTORY"
)

# Answers to who is known and may ask other things.
_MAY_NOT_ASK = frozenset(
    {
        "AuthorizationPermissionMismatch",
        "AuthorizationFailure",
        "InsufficientAccountPermissions",
        "AuthorizationResourceTypeMismatch",
        "AuthorizationServiceMismatch",
    }
)


class AdlsClient(HttpClient[AdlsRequest]):
    """Sends the requests of one store.

    The first one is preceded by a question: has the account a hierarchical namespace? Whoever
    asks meanwhile waits for that answer and shares it.

    Args:
        settings: of the store.
        host: its clock.
        transport: what sends.
        credential: what authorises, if not that of the settings: the transport may do it.

    Attributes:
        container: path of the container in URLs.
        source: the same as the source of a rename is named.
        tail: what the source of a rename ends in: a SAS is needed there too.
    """

    def __init__(
        self,
        settings: AzureSettings,
        host: Host,
        transport: Transport,
        credential: AdlsCredential | None = None,
    ) -> None:
        credential = credential or settings.credential
        judge = AdlsErrorTranslator(settings.place, settings.credential, host.now)
        super().__init__(host, transport, judge, encode)
        self.place = settings.place
        self._managed = settings.place.onelake
        self._origin = settings.place.origin
        self.source = settings.place.source
        self.container = settings.place.prefix + self.source
        self._credential = credential
        self._suffix = f"&{credential.suffix}" if credential.suffix else ""
        self.tail = f"?{credential.suffix}" if self._suffix else ""
        # OneLake has directories everywhere, and might refuse the question.
        self._hierarchical = settings.place.onelake or settings.hierarchical
        self._flight = Flight(self._probe)

    async def ask(
        self,
        request: AdlsRequest,
        verb: str,
        path: str,
        query: SignedQuery,
        headers: dict[str, str],
        body: bytes = b"",
        limit: int = SMALL,
    ) -> Response:
        """Send a request once and return the response, whatever its status.

        Args:
            request: the operation, for errors.
            verb: in capitals.
            path: of the URL, percent-encoded.
            query: of the URL.
            headers: by lower-case name; added to here.
            body: whole.
            limit: most bytes of the answer.

        Raises:
            StoreError: there is no answer, the account has a flat namespace, or the service has
                ignored a header and named it.
        """
        if not self._hierarchical:
            await self._need_directories(request)
        credential = self._credential
        try:  # as ``_exchange``, without a coroutine of its own: each rename passes here
            if credential.renew_at <= self._now():
                await credential.renew()
            url = self._authorized(verb, path, query, headers, len(body))
            answer = await self._send(verb, url, headers, body, limit=limit)
            if answer.status == 401 or credential.in_doubt:
                await self._heard(answer, headers)
        except SILENCE as error:
            raise self.judge.translate(request, error) from error
        if _REJECTED in answer.headers and answer.status < 300:
            _refuse_ignored(request, answer, headers)
        return answer

    def encode(self, request: AdlsRequest, path: str) -> str:
        """See ``HttpClient.encode``; what Fabric manages is not written to."""
        if self._managed and request.writes and not self.may_write(path):
            raise RejectedError(request.op, path, MANAGED)
        try:
            return encode(path)
        except ValueError as error:
            raise self.judge.translate(request, error) from None

    def may_write(self, path: str) -> bool:
        """Return whether programs may change ``path``; Fabric manages some."""
        return not self._managed or path.count("/") > _MANAGED

    def need(self, request: AdlsRequest, answer: Response, *expected: int) -> None:
        """Raise the error of ``answer`` unless it has the expected status.

        A response that is not from the service is an error too.
        """
        if answer.status not in expected or "x-ms-request-id" not in answer.headers:
            raise self.judge.translate(request, answer)

    async def aclose(self) -> None:
        """Close connections and credential."""
        await super().aclose()
        await self._credential.aclose()

    async def _exchange(
        self,
        verb: str,
        path: str,
        query: SignedQuery,
        headers: dict[str, str],
        body: bytes,
        limit: int,
    ) -> Response:
        credential = self._credential
        if credential.renew_at <= self._now():
            await credential.renew()
        url = self._authorized(verb, path, query, headers, len(body))
        answer = await self._send(verb, url, headers, body, limit=limit)
        if answer.status == 401 or credential.in_doubt:
            await self._heard(answer, headers)
        return answer

    def _authorized(
        self, verb: str, path: str, query: SignedQuery, headers: dict[str, str], length: int
    ) -> str:
        """Complete the headers of a request that is sent now, and return its URL."""
        headers["x-ms-version"] = VERSION
        self._credential.authorize(verb, path, query, headers, length)
        if verb not in READS:
            check_grant()
        tail = query.text + self._suffix if query.text else self.tail[1:]
        return f"{self._origin}{path}?{tail}" if tail else self._origin + path

    async def _heard(self, answer: Response, headers: dict[str, str]) -> None:
        """Tell the credential what became of a request. Raises ``TokenError``."""
        credential = self._credential
        if answer.status == 401 and await credential.refused(headers):
            raise TokenError("the token was rejected and has been renewed", again=True)
        if credential.in_doubt and answer.status < 400:
            credential.accepted(headers)

    # --- the namespace -----------------------------------------------------------------------

    async def _need_directories(self, request: AdlsRequest) -> None:
        request = request._replace(writes=False)  # it has not been sent yet
        if self._hierarchical is None:
            answer = await self._flight()
            if isinstance(answer, Response):
                self._hierarchical = self._has_directories(request, answer)
            else:
                raise self.judge.translate(request, answer)
        if not self._hierarchical:
            raise RejectedError(
                request.op,
                request.path,
                f"the account {self.place.account!r} has a flat namespace, where a rename is a "
                "copy and a delete for every file: set fs.azure.account.hns.enabled=false to "
                "commit by block lists there, or use an account with a hierarchical namespace "
                "(Azure Data Lake Storage Gen2)",
            )

    async def _probe(self) -> Response | TransportError | TokenError | ValueError:
        """Ask whether the account has a hierarchical namespace.

        An error response is a result too.
        """
        try:
            answer = await self._exchange("HEAD", self.container + "/", _ACCESS, {}, b"", SMALL)
            if answer.status == 403 and explain(answer)[0] in _MAY_NOT_ASK:
                return await self._exchange("HEAD", self.container, _CONTAINER, {}, b"", SMALL)
            return answer
        except SILENCE as error:
            return error

    def _has_directories(self, request: AdlsRequest, answer: Response) -> bool:
        said = answer.headers.get("x-ms-namespace-enabled")
        known = "x-ms-request-id" in answer.headers
        if answer.status == 200 and known:
            return said != "false"
        code = explain(answer)[0]
        if answer.status == 400 and known and not code.startswith(("InvalidHeader", "InvalidRes")):
            return False
        if answer.status == 403 and code in _MAY_NOT_ASK:
            raise DeniedError(
                request.op,
                request.path,
                f"{answer.status} {code}: the credential has no permission to find out whether "
                "the account has a hierarchical namespace; grant it (SAS: e), or set "
                "fs.azure.account.hns.enabled=true if it has one",
            )
        if answer.status == 404 and known and code != "FilesystemNotFound":
            detail = f"404 {code}: {self.place.origin} has no such account"
            raise RejectedError(request.op, request.path, detail)
        raise self.judge.translate(request, answer)


def _refuse_ignored(request: AdlsRequest, answer: Response, headers: Mapping[str, str]) -> None:
    """Raise if the service has ignored a header that was sent for its meaning.

    OneLake then does the rest of a request: a condition was not looked at, a token not kept.
    """
    named = {name.strip().lower() for name in answer.headers[_REJECTED].split(",")}
    if ignored := sorted(named & headers.keys() - _HARMLESS):
        raise RejectedError(
            request.op,
            request.path,
            f"{answer.status}: the service has ignored {', '.join(ignored)} ({_REJECTED}) and may "
            "have done the rest of the request; without it nothing here is safe, so do not use "
            "this place",
        )
