"""Sign and send the requests to a bucket, and read the responses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from asynccommit.errors import OptionError, StoreError, ThrottledError, UnavailableError
from asynccommit.runtime.host import Host
from asynccommit.stores.grant import check_grant
from asynccommit.stores.http.base import READS, Response, Transport, TransportError
from asynccommit.stores.http.client import SILENCE, SMALL, HttpClient
from asynccommit.stores.http.tokens import Flight, TokenError
from asynccommit.stores.s3.endpoint import S3Endpoint, at_endpoint, is_region
from asynccommit.stores.s3.errors import (
    S3ErrorTranslator,
    S3Request,
    region_of,
    says_expired,
)
from asynccommit.stores.s3.errors import explain as explain_answer
from asynccommit.stores.s3.machine import MachineConfig, explain
from asynccommit.stores.s3.options import S3Settings
from asynccommit.stores.s3.sessions import QUERY, Session, SessionCredential, session_of
from asynccommit.stores.s3.sign import Signer
from asynccommit.stores.s3.wire import encode

_CREATE = S3Request("create_session", "/")


class S3Client(HttpClient[S3Request]):
    """Sends the requests of one store.

    If neither options nor the environment set region and endpoint, they are read from the machine's
    configuration before the first request. A bucket in another region names that region, which is
    used from then on: the rejected request had no effect, so it is sent again.

    Args:
        settings: of the store.
        host: its clock.
        transport: what sends.
        moved: called with the settings when the machine names an endpoint other than AWS's own.

    Attributes:
        settings: of the store.
        place: where the bucket is, as far as that is known.
    """

    judge: S3ErrorTranslator

    def __init__(
        self,
        settings: S3Settings,
        host: Host,
        transport: Transport,
        moved: Callable[[S3Settings], None],
    ) -> None:
        judge = S3ErrorTranslator(settings.place, settings.credential)
        super().__init__(host, transport, judge, encode)
        self.settings = settings
        self._moved = moved
        self._own = self._credential = settings.credential
        if settings.place.zone:
            self._credential = SessionCredential(self._own, self._create_session, host.now)
            self.judge.trust(self._credential)
        self._headers = dict(settings.headers)
        self._flight = Flight(self._look)
        self._ready = settings.machine is None
        self._go_to(settings.place)

    async def ask(
        self,
        request: S3Request,
        verb: str,
        key: str | None,
        query: str = "",
        headers: dict[str, str] | None = None,
        body: bytes = b"",
        limit: int = SMALL,
        *,
        own: bool = False,
    ) -> Response:
        """Send a request once and return the response, whatever its status.

        Args:
            request: the operation, for errors.
            verb: in capitals.
            key: percent-encoded, of an object; ``None`` for the bucket itself.
            query: of the URL, sorted by name.
            headers: by lower-case name; added to here.
            body: whole.
            limit: most bytes of the answer.
            own: sign by the caller's own keys, also where others are by those of a session.

        Raises:
            StoreError: there is no answer.
        """
        try:
            if not self._ready:
                await self._get_ready()
            return await self._exchange(verb, key, query, headers or {}, body, limit, own)
        except SILENCE as error:
            raise self.judge.translate(request, error) from error

    def late(self, request: S3Request, answer: Response, error: ValueError) -> StoreError:
        """Return the error in a response that began with status 200."""
        said = explain_answer(answer)
        return self.judge.verdict(request, 0, said) if said.code else self.unread(request, error)

    # --- where to ----------------------------------------------------------------------------

    def _go_to(self, place: S3Endpoint) -> None:
        self.place = place
        self.judge.go_to(place)
        self._origin, self._path = place.origin, place.path
        self._signer, self._own_signer = (
            Signer(place.server, place.signed_for, plain=place.plain, service=place.service)
            for _ in range(2)
        )

    async def _get_ready(self) -> None:
        """Ask the machine where requests go."""
        found = await self._flight()
        if isinstance(found, TokenError):
            raise TokenError(found.detail, again=found.again)
        if self._ready:  # by another one who waited for the same answer
            return
        place = self.place
        if found.region and not place.region:
            if not is_region(found.region):
                raise TokenError("the region of the profile is not a valid name", again=False)
            place = place.in_region(found.region)
        if found.endpoint:
            try:
                place = at_endpoint(place, "endpoint_url", found.endpoint, by_path=None)
                place.refuse_plain("credentials of a profile")
            except OptionError as error:
                raise TokenError(f"the profile cannot be used: {error}", again=False) from None
        if place.zone and place.real and not place.region:
            raise TokenError(
                f"the region of the zone {place.zone} is unknown: set region", again=False
            )
        self._go_to(place)
        self._ready = True
        if not place.real:
            self.settings = replace(self.settings, place=place)
            self._moved(self.settings)

    async def _look(self) -> MachineConfig | TokenError:
        machine = self.settings.machine
        assert machine is not None, "asked only where there is one"
        try:
            return await asyncio.to_thread(machine.config)
        except Exception as error:  # of botocore: the machine tells them apart
            if self._credential.keys is not None or self._credential.anonymous:
                return MachineConfig("", "")  # who has keys needs no configuration
            return explain(error)

    async def _create_session(self) -> Session | TokenError:
        """Create a session by the caller's own keys."""
        try:
            answer = await self._once("GET", None, QUERY, {}, b"", SMALL, own=True)
            if answer.status == 200:
                return session_of(answer.body)
        except TokenError as error:
            return error
        except (TransportError, ValueError) as error:
            said = self._own.hide(str(error))
            again = isinstance(error, TransportError)
            return TokenError(f"no session of the bucket: {said}", again=again)
        failure = self.judge.translate(_CREATE, answer)
        again = isinstance(failure, UnavailableError | ThrottledError)
        return TokenError(f"no session of the bucket: {failure.detail}", again=again)

    # --- there and back ----------------------------------------------------------------------

    async def _exchange(
        self,
        verb: str,
        key: str | None,
        query: str,
        headers: dict[str, str],
        body: bytes,
        limit: int,
        own: bool,
    ) -> Response:
        answer = await self._once(verb, key, query, dict(headers), body, limit, own=own)
        if answer.status < 300 or self.place.zone:
            return answer
        region = region_of(answer)
        if region and region != self.place.signed_for and self._can_move(answer):
            self._go_to(self.place.in_region(region))
            answer = await self._once(verb, key, query, dict(headers), body, limit)
        return answer

    def _can_move(self, answer: Response) -> bool:
        """Return whether another region can be tried.

        On services other than AWS, a region is only part of the signature.
        """
        return self.place.real or answer.status in (400, 403)

    async def _once(
        self,
        verb: str,
        key: str | None,
        query: str,
        headers: dict[str, str],
        body: bytes,
        limit: int,
        *,
        own: bool = False,
    ) -> Response:
        credential = self._own if own else self._credential
        now = self._now()
        if credential.renew_at <= now:
            await credential.renew()
            now = self._now()
        if self._headers:
            headers.update(self._headers)
        path = (self._path or "/") if key is None else f"{self._path}/{key}"
        keys = credential.keys
        if keys is not None:
            signer = self._own_signer if own else self._signer
            signer.sign(keys, verb, path, query, headers, body, now)
        url = f"{self._origin}{path}?{query}" if query else f"{self._origin}{path}"
        if verb not in READS:
            check_grant()
        answer = await self._send(verb, url, headers, body, limit=limit)
        if keys is not None and says_expired(answer) and await credential.refused(keys):
            raise TokenError("the session had expired and has been renewed", again=True)
        if credential.in_doubt and keys is not None and answer.status < 400:
            credential.accepted(keys)
        return answer
