"""The client of a bucket: authorise, send once, check.

Every request to the bucket passes through this module.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

from asynccommit.errors import UnsupportedError
from asynccommit.runtime.host import Host
from asynccommit.stores.gcs.errors import (
    GcsErrorTranslator,
    GcsRequest,
    explain,
    says_no_bucket,
)
from asynccommit.stores.gcs.options import GcsSettings
from asynccommit.stores.gcs.wire import PLAIN, encode, json_of
from asynccommit.stores.grant import check_grant
from asynccommit.stores.http.base import READS, Response, Transport
from asynccommit.stores.http.client import SILENCE, SMALL, HttpClient
from asynccommit.stores.http.errors import Answer
from asynccommit.stores.http.tokens import Flight, TokenError

_ZONE = "zone"
_NO_ZONES = (
    "the bucket is zonal (Rapid storage), which is not supported: its objects are written and read "
    "by gRPC only, and are visible before they are whole; write to a bucket in a region"
)


class GcsClient(HttpClient[GcsRequest]):
    """Sends the requests of one store.

    The first one is preceded by a question: has the bucket folders? Whoever asks meanwhile waits
    for that answer and shares it.

    Args:
        settings: of the store.
        host: its clock.
        transport: what sends.
        learn: called with whether the bucket has folders, once that is known.

    Attributes:
        place: where the bucket is.
        settings: of the store.
        hierarchical: whether it has folders; ``None`` before that is known.
        objects: path of its objects in URLs, with a slash at the end.
        folders: the same of its folders.
        downloads: path of what its objects hold, likewise.
        tail: what the query of every URL ends in.
    """

    def __init__(
        self,
        settings: GcsSettings,
        host: Host,
        transport: Transport,
        learn: Callable[[bool], None],
    ) -> None:
        judge = GcsErrorTranslator(settings.place, settings.credential)
        super().__init__(host, transport, judge, encode)
        self.place = settings.place
        self.settings = settings
        self.hierarchical = settings.hierarchical
        self.objects = settings.place.objects + "/"
        self.folders = settings.place.bucket_path + "/folders/"
        prefix = settings.place.prefix
        self.downloads = f"{prefix}/download{self.objects.removeprefix(prefix)}"
        payer = quote(settings.user_project, safe="")
        self.tail = f"&userProject={payer}" if payer else ""
        self._alone = f"?{self.tail[1:]}" if payer else ""
        self._origin = settings.place.origin
        self._credential = settings.credential
        self._headers = dict(settings.headers)
        self._learn = learn
        self._flight = Flight(self._probe)

    async def ask(
        self,
        request: GcsRequest,
        verb: str,
        path: str,
        query: str = "",
        headers: dict[str, str] | None = None,
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
            StoreError: there is no answer.
        """
        if self.hierarchical is None:
            await self.need_layout(request)
        try:
            return await self._exchange(verb, path, query, headers or {}, body, limit)
        except SILENCE as error:
            raise self.judge.translate(request, error) from error

    async def aclose(self) -> None:
        """Close connections and credential."""
        await super().aclose()
        await self._credential.aclose()

    async def _exchange(
        self, verb: str, path: str, query: str, headers: dict[str, str], body: bytes, limit: int
    ) -> Response:
        credential = self._credential
        if credential.renew_at <= self._now():
            await credential.renew()
        if self._headers:
            headers = {**self._headers, **headers}
        credential.authorize(headers)
        tail = f"?{query}{self.tail}" if query else self._alone
        if verb not in READS:
            check_grant()
        answer = await self._send(verb, f"{self._origin}{path}{tail}", headers, body, limit=limit)
        if answer.status == 401 and await credential.refused(headers):
            raise TokenError("the token was rejected and has been renewed", again=True)
        if credential.in_doubt and answer.status < 400:
            credential.accepted(headers)
        return answer

    # --- folders -----------------------------------------------------------------------------

    async def need_layout(self, request: GcsRequest) -> None:
        """Find out whether the bucket has folders, once. Raises ``StoreError``."""
        if self.hierarchical is None:
            self._settle(request.look, await self._flight())  # it has not been sent yet

    def _settle(self, request: GcsRequest, answer: Answer) -> None:
        if self.hierarchical is not None:  # by another one who waited for the same answer
            return
        if not isinstance(answer, Response):
            raise self.judge.translate(request, answer)
        self.hierarchical = self._has_folders(request, answer)
        self._learn(self.hierarchical)

    async def _probe(self) -> Answer:
        """Ask for the layout of the bucket; a failure leaves it unknown."""
        bucket = self.place.bucket_path
        query = f"fields=hierarchicalNamespace,locationType{PLAIN}"
        try:
            answer = await self._exchange("GET", f"{bucket}/storageLayout", query, {}, b"", SMALL)
            if answer.status == 404 and not says_no_bucket(answer):
                # A server of another hand, which knows no such question: is there a bucket?
                query = f"fields=name{PLAIN}"
                answer = await self._exchange("GET", bucket, query, {}, b"", SMALL)
                return answer._replace(body=_no_bucket(answer))
            return answer
        except SILENCE as error:
            return error

    def _has_folders(self, request: GcsRequest, answer: Response) -> bool:
        if answer.status == 200:
            try:
                found = json_of(answer.body)
                if found.get("locationType") == _ZONE:
                    raise UnsupportedError(f"{request.op} {request.path}: {_NO_ZONES}")
                return bool((found.get("hierarchicalNamespace") or {}).get("enabled"))
            except ValueError as error:
                raise self.unread(request, error) from None
            except AttributeError as error:
                raise self.unread(request, ValueError(str(error))) from None
        # Who may not ask may still write; who may not list either is told so by the listing.
        # Servers that do not know the question have no folders.
        if explain(answer)[0] and answer.status in (403, 405, 501):
            return False
        raise self.judge.translate(request, answer)


def _no_bucket(answer: Response) -> bytes:
    """Return the body of a response about a bucket.

    Servers other than Google's may return less.
    """
    if answer.status == 404 and explain(answer)[0]:
        return b'{"error":{"message":"The specified bucket does not exist.","status":"notFound"}}'
    return answer.body
