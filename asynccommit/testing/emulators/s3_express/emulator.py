"""An emulator of directory buckets of S3 Express One Zone, in memory.

    async with ExpressEmulator(buckets=["data--use1-az4--x-s3"]) as emulator:
        ...  # emulator.endpoint is the endpoint_url of clients

``running_express_emulator`` does the same on a thread of its own, for code without an event loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from asynccommit.errors import OptionError
from asynccommit.runtime.host import Host, this_host
from asynccommit.testing.emulators.control import PREFIX, Control
from asynccommit.testing.emulators.emulator import FaultyRequest, Running, Serving, on_thread
from asynccommit.testing.emulators.s3_express.app import KEYS, ExpressApp
from asynccommit.testing.emulators.s3_express.call import ExpressCall
from asynccommit.testing.emulators.s3_express.wire import ExpressResponse, refused, written
from asynccommit.testing.emulators.server import Connection, RequestLimits, ServerRequest
from asynccommit.testing.emulators.tls import Tls
from asynccommit.testing.models.adls.refusals import Refusal
from asynccommit.testing.models.fault_rules import CLEAR, Climate, FaultDecision, Reply
from asynccommit.testing.models.s3.directory_bucket import DirectoryRules, DirectoryService
from asynccommit.testing.models.s3.refusals import S3_EXPRESS

BUCKET = "data--use1-az4--x-s3"
"""The bucket that an emulator has if none is named."""


class ExpressEmulator(Serving):
    """Directory buckets on one port; an async context manager.

    A bucket is named by the host, ``BUCKET.ANYTHING``, as on the service. On an address, which has
    no names below it, the path names it, as the clients of AWS do there.

    Args:
        port: port to listen on; 0 for any free port.
        address: network interface, loopback by default.
        buckets: names of the buckets, each of which ends in ``--ZONE--x-s3``.
        switches: what is not documented of the service.
        keys: secrets of the callers, by the id of their key.
        strict: refuse paths that name the bucket even on an address.
        climate: initial latency, faults and request limit.
        limits: maximum size of a request.
        tls: serve https: with this context, or a new certificate (see ``ca_pem``) if it is true,
            or a list of further host names of one.
        seed: random seed of the faults.
        host: source of time and ids.

    Raises:
        OptionError: the name of a bucket is invalid.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        address: str = "127.0.0.1",
        buckets: Sequence[str] = (BUCKET,),
        switches: DirectoryRules | None = None,
        keys: Mapping[str, str] = KEYS,
        strict: bool = False,
        climate: Climate | None = None,
        limits: RequestLimits | None = None,
        tls: Tls = False,
        seed: int = 0,
        host: Host | None = None,
    ) -> None:
        super().__init__(
            S3_EXPRESS,
            host or this_host(),
            port=port,
            address=address,
            climate=climate,
            limits=limits,
            tls=tls,
            seed=seed,
        )
        for name in buckets:
            if not name.endswith("--x-s3") or name.count("--") < 2:
                raise OptionError(
                    f"{name!r} is not the name of a directory bucket: NAME--ZONE--x-s3"
                )
        self.buckets = tuple(buckets)
        self._switches = switches or DirectoryRules()
        self._keys = keys
        self._strict = strict
        self._control = Control(self)
        self.service, self.app = self._make()

    def _make(self) -> tuple[DirectoryService, ExpressApp]:
        service = DirectoryService(now=self.host.now, new_id=self.host.new_id)
        for name in self.buckets:
            service.create_bucket(name, self._switches)
        return service, ExpressApp(service, keys=self._keys, strict=self._strict)

    def reset(self) -> None:
        """Delete all data, sessions and statistics; restore the initial weather."""
        self.service, self.app = self._make()
        self._answers.clear()
        self.weather = self.fresh_weather()
        self.changes += 1

    def __call__(self, request: ServerRequest, connection: Connection) -> None:
        """Answer one request."""
        if request.target.startswith(PREFIX):
            connection.send(self._control.answer(request))
            return
        target = request.target.decode("latin-1")
        try:
            call = self.app.read(request.method, target, request.headers, request.body)
        except Refusal as refusal:
            self.send(connection, self._bytes(request, refused(refusal)))
            return
        decision = self.weather.decide(call.op, call.place)
        if decision is CLEAR:
            self.send(connection, self._bytes(request, self.app.perform(call)))
        else:
            self._meet(call, decision, request, connection)

    def _meet(
        self,
        call: ExpressCall,
        decision: FaultDecision,
        request: ServerRequest,
        connection: Connection,
    ) -> None:
        storm = FaultyRequest(decision, partial(self.app.perform, call))
        storm.meet(partial(self._end, request, connection, decision))

    def _end(
        self,
        request: ServerRequest,
        connection: Connection,
        decision: FaultDecision,
        answer: ExpressResponse | None,
    ) -> None:
        if decision.reply is Reply.CUT:
            connection.cut()
        elif decision.reply is Reply.REFUSAL or answer is None:
            if decision.reply is not Reply.NEVER and decision.refusal is not None:
                self.send(connection, self._bytes(request, refused(decision.refusal)))
        elif decision.reply is not Reply.NEVER:
            self.send(connection, self._bytes(request, answer))

    def _bytes(self, request: ServerRequest, answer: ExpressResponse) -> bytes:
        bodiless = request.method == "HEAD"
        return written(answer, bodiless=bodiless, keep_alive=request.keep_alive)


class ExpressEmulatorThread(Running[ExpressEmulator]):
    """An emulator on a thread, created by ``running_express_emulator``."""


@contextmanager
def running_express_emulator(**arguments: Any) -> Iterator[ExpressEmulatorThread]:
    """Run an ``ExpressEmulator`` on a thread, inside the block.

    Raises the errors of its ``start``.
    """
    make = partial(ExpressEmulator, **arguments)
    with on_thread(make, ExpressEmulatorThread, "s3-express-emulator") as running:
        yield running
