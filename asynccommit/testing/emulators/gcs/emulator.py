"""An emulator of Google Cloud Storage in memory: its JSON API over ``testing.models.gcs``.

    async with GcsEmulator(buckets=["data"]) as emulator:
        ...  # emulator.endpoint is what STORAGE_EMULATOR_HOST is to be

``running_gcs_emulator`` does the same on a thread of its own, for code without an event loop.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from asynccommit.runtime.host import Host, this_host
from asynccommit.testing.emulators.control import PREFIX, Control, store_verbs
from asynccommit.testing.emulators.emulator import Emulator, Running, on_thread
from asynccommit.testing.emulators.gcs.app import GcsApp
from asynccommit.testing.emulators.gcs.call import GcsCall
from asynccommit.testing.emulators.gcs.config import read_pages
from asynccommit.testing.emulators.gcs.control import put_bucket, verbs_of
from asynccommit.testing.emulators.gcs.retry_test import RetryTests
from asynccommit.testing.emulators.gcs.scripted import Scripted, is_scripted
from asynccommit.testing.emulators.gcs.tokens import AcceptedTokens
from asynccommit.testing.emulators.gcs.weather import decide, refused
from asynccommit.testing.emulators.gcs.wire import GcsResponse, GcsWire, error_answer
from asynccommit.testing.emulators.server import Connection, RequestLimits, ServerRequest
from asynccommit.testing.emulators.storms import Storm, later
from asynccommit.testing.models.fault_rules import CLEAR, Climate, FaultDecision, Reply
from asynccommit.testing.models.gcs import model
from asynccommit.testing.models.gcs.dialect import GCS

_SCRIPTS = b"/retry_test"


class GcsEmulator(Emulator):
    """The buckets of one project on one port; an async context manager.

    Args:
        port: where to listen; 0 is any free port.
        address: the interface, loopback unless there is a reason.
        buckets: the names of those that are there at the start, or name -> options.
        climate: latency, faults and the limit on requests to begin with.
        pages: how the service pages and splits what it does.
        limits: what a request may hold.
        tls: serve https.
        seed: of the faults' randomness.
        host: where time and ids come from.

    Raises:
        OptionError: a bucket cannot have such a name or such options.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        address: str = "127.0.0.1",
        buckets: Mapping[str, model.BucketOptions] | Iterable[str] = (),
        climate: Climate | None = None,
        pages: model.GcsLimits | None = None,
        limits: RequestLimits | None = None,
        tls: ssl.SSLContext | None = None,
        seed: int = 0,
        host: Host | None = None,
    ) -> None:
        super().__init__(
            GCS,
            host or this_host(),
            port=port,
            address=address,
            climate=climate,
            limits=limits,
            tls=tls,
            seed=seed,
        )
        options = model.BucketOptions()
        named = buckets if isinstance(buckets, Mapping) else dict.fromkeys(buckets, options)
        self._buckets = dict(named)
        self._pages = pages or model.GcsLimits()
        self.keyring = AcceptedTokens()
        self.wire = GcsWire(self.host.now, self.host.new_id().replace("-", "")[:16])
        verbs = {**store_verbs(self), **verbs_of(lambda: self.service)}
        self._control = Control(self, verbs)
        self.service, self.app = self._make()
        self.retry_tests = RetryTests(self.host.new_id, self.app.routes.methods)

    def _make(self) -> tuple[model.GcsService, GcsApp]:
        service = model.GcsService(now=self.host.now, new_id=self.host.new_id, limits=self._pages)
        for name, options in self._buckets.items():
            put_bucket(service, name, options)
        return service, GcsApp(service, scheme=self.scheme, check=self.keyring.check)

    def reset(self) -> None:
        """Forget all that is stored and all statistics; weather and buckets are as at the start."""
        self.service, self.app = self._make()
        self.retry_tests.clear()
        self._answers.clear()
        self.weather = self.fresh_weather()

    @property
    def keys(self) -> AcceptedTokens:
        """The credentials that are accepted."""
        return self.keyring

    def pages(self) -> Mapping[str, Any]:
        """Return how the service pages and splits what it does."""
        return self.service.limits._asdict()

    def set_pages(self, given: object) -> None:
        """Change how the service pages. Raises ``OptionError`` for what is no such setting."""
        self.service.limits = read_pages(given, self.service.limits)

    @property
    def environ(self) -> dict[str, str]:
        """What Google's clients, gcsfs and gcloud-aio-storage want in their environment."""
        return {"STORAGE_EMULATOR_HOST": self.endpoint}

    @property
    def bucket(self) -> str:
        """The name of the (first) bucket that was there at the start."""
        return str(next(iter(self._buckets)))

    def __call__(self, request: ServerRequest, connection: Connection) -> None:
        """Answer one request."""
        if request.target.startswith(PREFIX):
            connection.send(self._control.answer(request))
            return
        target = request.target.decode("latin-1")
        if request.target.startswith(_SCRIPTS) and self.retry_tests.concerns(target):
            answer = self.retry_tests.answer(request.method, target, request.body)
            connection.send(self._bytes(request, answer))
            return
        try:
            call = self.app.read(request.method, target, request.headers, request.body)
            if is_scripted(request.headers) and self._follow(call, request, connection):
                return
        except model.GcsRefusal as refusal:
            self.send(connection, self._bytes(request, error_answer(refusal)))
            return
        self._meet(call, request, connection)

    def _follow(self, call: GcsCall, request: ServerRequest, connection: Connection) -> bool:
        """Let a request meet the fault that it asks for, if there is one left."""
        write, send = partial(self._bytes, request), partial(self.send, connection)
        scripted = Scripted(self.app, call, connection, write, send)
        return scripted.follow(self.retry_tests, partial(self._meet, call, request, connection))

    def _meet(self, call: GcsCall, request: ServerRequest, connection: Connection) -> None:
        decision = decide(self.weather, call, later)
        if decision is CLEAR:
            self.send(connection, self._bytes(request, self.app.perform(call)))
        else:
            storm = Storm(decision, partial(self.app.perform, call))
            storm.meet(partial(self._end, request, connection, decision))

    def _end(
        self,
        request: ServerRequest,
        connection: Connection,
        decision: FaultDecision,
        answer: GcsResponse | None,
    ) -> None:
        if decision.reply is Reply.CUT:
            connection.cut()
        elif decision.reply is Reply.REFUSAL or answer is None:
            if decision.reply is not Reply.NEVER:
                self.send(connection, self._bytes(request, refused(decision)))
        elif decision.reply is not Reply.NEVER:
            self.send(connection, self._bytes(request, answer))

    def _bytes(self, request: ServerRequest, answer: GcsResponse) -> bytes:
        bodiless, keep_alive = request.method == "HEAD", request.keep_alive
        return self.wire.write(answer, bodiless=bodiless, keep_alive=keep_alive)


class GcsEmulatorThread(Running[GcsEmulator]):
    """An emulator on a thread of its own; made by ``running_gcs_emulator``."""

    def __init__(self, emulator: GcsEmulator, stop: asyncio.Event) -> None:
        super().__init__(emulator, stop)
        self.environ = emulator.environ


@contextmanager
def running_gcs_emulator(**arguments: Any) -> Iterator[GcsEmulatorThread]:
    """Run a ``GcsEmulator`` with these arguments on a thread, for as long as the block.

    Raises what its ``start`` raises.
    """
    make = partial(GcsEmulator, **arguments)
    with on_thread(make, GcsEmulatorThread, "gcs-emulator") as running:
        yield running
