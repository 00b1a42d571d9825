"""An emulator of Google Cloud Storage in memory.

    async with GcsEmulator(buckets=["data"]) as emulator:
        ...  # emulator.endpoint is what STORAGE_EMULATOR_HOST is to be

``running_gcs_emulator`` does the same on a thread of its own, for code without an event loop.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from asynccommit.runtime.host import Host, this_host
from asynccommit.testing.emulators.control import PREFIX, Control, store_verbs
from asynccommit.testing.emulators.emulator import (
    Emulator,
    FaultyRequest,
    Running,
    later,
    on_thread,
)
from asynccommit.testing.emulators.gcs.app import GcsApp
from asynccommit.testing.emulators.gcs.batch import decide, refused
from asynccommit.testing.emulators.gcs.call import GcsCall
from asynccommit.testing.emulators.gcs.config import read_pages
from asynccommit.testing.emulators.gcs.control import put_bucket, verbs_of
from asynccommit.testing.emulators.gcs.retry_test import RetryTests
from asynccommit.testing.emulators.gcs.scripted import ScriptedRequest, is_scripted
from asynccommit.testing.emulators.gcs.wire import GcsResponse, GcsWire, error_answer
from asynccommit.testing.emulators.server import Connection, RequestLimits, ServerRequest
from asynccommit.testing.emulators.tls import Tls
from asynccommit.testing.models.fault_rules import CLEAR, Climate, FaultDecision, Reply
from asynccommit.testing.models.gcs import model
from asynccommit.testing.models.gcs.model import GcsRefusal, refuse
from asynccommit.testing.models.gcs.refusals import GCS

_SCRIPTS = b"/retry_test"


class GcsEmulator(Emulator):
    """An emulator of one project's buckets on one port, as an async context manager.

    Args:
        port: port to listen on; 0 for any free port.
        address: network interface, loopback by default.
        buckets: names of the initial buckets, or name -> options.
        climate: initial latency, faults and request limit.
        pages: limits that split listings and long operations into several requests.
        limits: maximum size of a request.
        tls: serve https: with this context, or a new certificate (see ``ca_pem``) if it is true,
            or a list of further host names of one.
        seed: random seed of the faults.
        host: source of time and ids.
        data: folder that keeps the stored data; ``None``: in memory only.

    Raises:
        OptionError: the name or the options of a bucket are invalid.
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
        tls: Tls = False,
        seed: int = 0,
        host: Host | None = None,
        data: str | os.PathLike[str] | None = None,
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
            data=data,
            kind="gcs",
            hosts=["storage.googleapis.com"],
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
        """Delete all data and statistics; restore initial weather and buckets."""
        self.service, self.app = self._make()
        self.retry_tests.clear()
        self._answers.clear()
        self.weather = self.fresh_weather()
        self.changes += 1

    def state(self) -> object:
        """Return what is stored, for ``packed``."""
        return self.service.dump()

    def restore(self, state: Any) -> None:
        """Store what ``state`` returned, and create missing initial buckets."""
        self.service.load(state)
        for name, options in self._buckets.items():
            if name not in state["buckets"]:
                put_bucket(self.service, name, options)

    @property
    def keys(self) -> AcceptedTokens:
        """The accepted credentials."""
        return self.keyring

    def pages(self) -> Mapping[str, Any]:
        """Return the limits that split listings and long operations."""
        return self.service.limits._asdict()

    def set_pages(self, given: object) -> None:
        """Change these limits. Raises ``OptionError`` for an invalid setting."""
        self.service.limits = read_pages(given, self.service.limits)

    @property
    def model(self) -> model.GcsService:
        """The model of the project: the stored data, without HTTP."""
        return self.service

    @property
    def environ(self) -> dict[str, str]:
        """Environment variables for Google's clients, gcsfs, gcloud-aio-storage."""
        return {"STORAGE_EMULATOR_HOST": self.endpoint}

    @property
    def bucket(self) -> str:
        """The name of the (first) initial bucket."""
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
        """Apply the scripted fault that a request asks for, if any is left."""
        write, send = partial(self._bytes, request), partial(self.send, connection)
        scripted = ScriptedRequest(self.app, call, connection, write, send)
        return scripted.follow(self.retry_tests, partial(self._meet, call, request, connection))

    def _meet(self, call: GcsCall, request: ServerRequest, connection: Connection) -> None:
        decision = decide(self.weather, call, later)
        if decision is CLEAR:
            self.send(connection, self._bytes(request, self.app.perform(call)))
        else:
            storm = FaultyRequest(decision, partial(self.app.perform, call))
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
    """An emulator on a thread of its own, created by ``running_gcs_emulator``."""

    def __init__(self, emulator: GcsEmulator, stop: asyncio.Event) -> None:
        super().__init__(emulator, stop)
        self.environ = emulator.environ


@contextmanager
def running_gcs_emulator(**arguments: Any) -> Iterator[GcsEmulatorThread]:
    """Run a ``GcsEmulator`` on a thread, inside the block.

    Raises the errors of its ``start``.
    """
    make = partial(GcsEmulator, **arguments)
    with on_thread(make, GcsEmulatorThread, "gcs-emulator") as running:
        yield running


def client_conf(endpoint: str, project: str = "emulated") -> Mapping[str, str]:
    """Return Hadoop's options for an emulator at ``http://HOST:PORT``.

    No key is needed. Folders of hierarchical buckets are not used: the connector manages them by
    gRPC only, which no emulator supports.
    """
    return {
        "fs.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
        "fs.AbstractFileSystem.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFS",
        "fs.gs.storage.root.url": endpoint,
        "fs.gs.auth.type": "UNAUTHENTICATED",
        "fs.gs.project.id": project,
        "fs.gs.block.size": "67108864",  # Hadoop's default is 64m, which the connector rejects.
        "fs.gs.hierarchical.namespace.folders.enable": "false",
    }


_CHALLENGE = 'Bearer realm="https://accounts.google.com/"'


@dataclass(slots=True)
class AcceptedTokens:
    """The accepted credentials.

    Attributes:
        tokens: valid bearer tokens; ``None`` if any token is valid and none is needed.
        expired: bearer tokens that have expired.
    """

    tokens: set[str] | None = field(default=None, repr=False)
    expired: set[str] = field(default_factory=set, repr=False)

    def check(self, call: GcsCall) -> None:
        """Raise ``GcsRefusal`` (401) unless the caller is authenticated."""
        header = call.headers.get("authorization")
        if header is None:
            if self.tokens is not None:
                raise _anonymous(call)
            return
        if self.tokens is None and not self.expired:
            return
        scheme, _, token = header.partition(" ")
        accepted = self.tokens is None or token in self.tokens
        if scheme.lower() != "bearer" or not accepted or token in self.expired:
            raise refuse(
                "authError",
                "Invalid Credentials",
                location_type="header",
                location="Authorization",
                headers={"WWW-Authenticate": f"{_CHALLENGE}, error=invalid_token"},
            )


def _anonymous(call: GcsCall) -> GcsRefusal:
    permission = call.route.method
    message = (
        f"Anonymous caller does not have {permission} access to the Google Cloud Storage "
        f"resource. Permission '{permission}' denied on resource (or it may not exist)."
    )
    return GcsRefusal(
        401,
        "required",
        message,
        location_type="header",
        location="Authorization",
        headers={"WWW-Authenticate": _CHALLENGE},
    )
