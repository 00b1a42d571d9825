"""An emulator of ADLS Gen2 in one process.

    async with AdlsEmulator() as emulator:
        ...  # emulator.url, emulator.account, emulator.key, emulator.connection_string

``running_emulator`` does the same on a thread of its own, for code without an event loop.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from asynccommit.errors import OptionError
from asynccommit.runtime.host import Host, this_host
from asynccommit.testing.emulators.adls import onelake as onelakes
from asynccommit.testing.emulators.adls.auth import (
    DEVELOPMENT_ACCOUNT,
    DEVELOPMENT_KEY,
    AccountKeys,
    connection_string,
)
from asynccommit.testing.emulators.adls.blob import Blob
from asynccommit.testing.emulators.adls.call import AdlsCall, read_target
from asynccommit.testing.emulators.adls.dfs import AdlsRoute, Dfs
from asynccommit.testing.emulators.adls.headers import encryption
from asynccommit.testing.emulators.adls.permissions import check_permissions
from asynccommit.testing.emulators.adls.wire import AdlsWire
from asynccommit.testing.emulators.config import read_pages
from asynccommit.testing.emulators.control import PREFIX, Control, store_verbs
from asynccommit.testing.emulators.emulator import Emulator, FaultyRequest, Running, on_thread
from asynccommit.testing.emulators.server import Connection, RequestLimits, ServerRequest
from asynccommit.testing.emulators.tls import Tls
from asynccommit.testing.models.adls import account as store
from asynccommit.testing.models.adls.onelake import OneLakeAccount
from asynccommit.testing.models.adls.refusals import refusal
from asynccommit.testing.models.fault_rules import ADLS, CLEAR, Climate, FaultDecision, Reply

# Operations on the content or properties of a file.
_CONTENT = frozenset(("append", "flush", "head", "properties", "read"))
# What would change the meaning of a request, and is not modelled: never ignored.
_UNSUPPORTED = (
    "x-ms-content-crc64",
    "x-ms-if-tags",
    "x-ms-range-get-content-crc64",
    "x-ms-source-content-crc64",
    "x-ms-structured-body",
)
_CLOUDS = ("core.windows.net", "fabric.microsoft.com")
# A client that resolves the service's own names to an emulator meets a certificate for them.
_DOMAINS = (
    "localhost",
    *(f"{kind}.{cloud}" for cloud in _CLOUDS for kind in ("dfs", "blob")),
)


class AdlsEmulator(Emulator):
    """An ADLS emulator with one or more accounts on one port, as an async context manager.

    Args:
        port: port to listen on; 0 for any free port.
        address: network interface, loopback by default.
        accounts: account name -> key; ``url`` and similar properties refer to the first.
        filesystems: names of the initial filesystems of every account.
        hns: whether the accounts have a hierarchical namespace.
        onelake: workspace -> its items, such as ``Sales.Lakehouse``: serve OneLake, one account of
            that name, in place of storage accounts.
        climate: initial latency, faults and request limit.
        pages: limits that split listings and long operations into several requests.
        limits: maximum size of a request.
        tls: serve https: with this context, or a new certificate (see ``ca_pem``) if it is true,
            or a list of further host names of one.
        seed: random seed of the faults.
        host: source of time and ids.
        data: folder that keeps the stored data; ``None``: in memory only.

    Raises:
        OptionError: the name of a filesystem is invalid.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        address: str = "127.0.0.1",
        accounts: Mapping[str, str] | None = None,
        filesystems: Iterable[str] = (),
        hns: bool = True,
        onelake: Mapping[str, Iterable[str]] | None = None,
        climate: Climate | None = None,
        pages: store.AdlsLimits | None = None,
        limits: RequestLimits | None = None,
        tls: Tls = False,
        seed: int = 0,
        host: Host | None = None,
        data: str | os.PathLike[str] | None = None,
    ) -> None:
        keys = dict(accounts or {DEVELOPMENT_ACCOUNT: DEVELOPMENT_KEY})
        if onelake is not None:
            keys = {onelakes.ACCOUNT: DEVELOPMENT_KEY}
        super().__init__(
            ADLS,
            host or this_host(),
            port=port,
            address=address,
            climate=climate,
            limits=limits,
            tls=tls,
            seed=seed,
            data=data,
            kind="adls" if onelake is None else "onelake",
            hosts=[f"{name}.{domain}" for name in keys for domain in _DOMAINS],
        )
        self._filesystems = tuple(dict.fromkeys(filesystems))
        self._hns = hns
        self._pages = pages or store.AdlsLimits()
        self._onelake = None if onelake is None else {name: [*onelake[name]] for name in onelake}
        self.ignored: Collection[str] = () if onelake is None else onelakes.IGNORED
        self.keyring = AccountKeys(keys) if onelake is None else onelakes.TokensOnly(keys)
        self.accounts: dict[str, store.AdlsAccount] = {}
        self.wire = AdlsWire(self.host.now, self.host.new_id()[:24], "https" if tls else "http")
        self._dfs = Dfs(self.accounts, self.wire)
        self._blob = Blob(self.accounts, self.wire, self.host.new_id, self._check, self.keyring)
        self._control = Control(self, store_verbs(self))
        self.reset()

    def reset(self) -> None:
        """Delete all data and statistics; restore initial weather and filesystems."""
        for name in self.keyring.keys:
            self.accounts[name] = self._new_account(name)
        self._blob.reset()
        self._answers.clear()
        self.weather = self.fresh_weather()
        self.changes += 1

    def _new_account(self, name: str) -> store.AdlsAccount:
        kind = store.AdlsAccount if self._onelake is None else OneLakeAccount
        account: store.AdlsAccount = kind(
            name,
            now=self.host.now,
            new_id=self.host.new_id,
            hns=self._hns,
            limits=self._pages,
        )
        self._fill(account)
        return account

    def _fill(self, account: store.AdlsAccount) -> None:
        """Make what is there from the start, if it is missing."""
        for filesystem in self._filesystems:
            _create(account, filesystem)
        if isinstance(account, OneLakeAccount):
            for workspace, items in (self._onelake or {}).items():
                account.add_workspace(workspace, items)

    def state(self) -> object:
        """Return what is stored, for ``packed``."""
        accounts = {name: account.dump() for name, account in self.accounts.items()}
        return {"hns": self._hns, "accounts": accounts, "blobs": self._blob.state()}

    def restore(self, state: Any) -> None:
        """Store what ``state`` returned.

        Raises ``OptionError`` if it is of other accounts."""
        if state["hns"] != self._hns:
            raise OptionError(
                "the folder has the state of an account "
                f"{'with' if state['hns'] else 'without'} a hierarchical namespace: "
                f"{'leave out' if state['hns'] else 'add'} --flat, or name another folder"
            )
        if unknown := sorted(set(state["accounts"]) - set(self.accounts)):
            raise OptionError(
                f"the folder has the state of account {unknown[0]!r}, which is not served: "
                "name that account, or another folder"
            )
        for name, saved in state["accounts"].items():
            self.accounts[name].load(saved)
            self._fill(self.accounts[name])
        self._blob.restore(state["blobs"])

    @property
    def keys(self) -> AccountKeys:
        """The accepted credentials."""
        return self.keyring

    def pages(self) -> Mapping[str, Any]:
        """Return the limits that split listings and long operations."""
        return self.model.limits._asdict()

    def set_pages(self, given: object) -> None:
        """Change these limits in all accounts. Raises ``OptionError`` if invalid."""
        limits = read_pages(given, self.model.limits)
        for account in self.accounts.values():
            account.limits = limits

    @property
    def url(self) -> str:
        """The URL of the (first) account, for both of its endpoints."""
        return f"{self.endpoint}/{self.account}"

    @property
    def account(self) -> str:
        """The name of the (first) account."""
        return next(iter(self.keyring.keys))

    @property
    def key(self) -> str:
        """The key of the (first) account."""
        return self.keyring.keys[self.account]

    @property
    def model(self) -> store.AdlsAccount:
        """The model of the (first) account: the stored data, without HTTP."""
        return self.accounts[self.account]

    @property
    def connection_string(self) -> str:
        """The connection string: both endpoints, account and key."""
        return connection_string(self.url, self.account, self.key)

    def __call__(self, request: ServerRequest, connection: Connection) -> None:
        """Answer one request."""
        if request.target.startswith(PREFIX):
            connection.send(self._control.answer(request))
            return
        try:
            call, route = self.read(request)
        except store.Refusal as error:
            self.send(connection, self.wire.refusal(request, error))
            return
        decision = self.weather.decide(route.op, call.place)
        if decision is CLEAR:
            self.send(connection, self.perform(call, route))
        else:
            storm = FaultyRequest(decision, partial(self.perform, call, route))
            storm.meet(partial(self._end, call, connection, decision))

    def read(self, request: ServerRequest) -> tuple[AdlsCall, AdlsRoute]:
        """Return what a request asks for. Raises ``Refusal``."""
        call = AdlsCall(request, read_target(request, self.accounts))
        if self._onelake is not None:
            for name in onelakes.take_headers(call, self.ignored):
                self.weather.struck[f"ignored {name}"] += 1
            onelakes.check_level(call)
        return call, (self._blob if call.blob else self._dfs).route(call)

    def _end(
        self, call: AdlsCall, connection: Connection, decision: FaultDecision, answer: bytes | None
    ) -> None:
        if decision.reply is Reply.CUT:
            connection.cut()
        elif decision.reply is Reply.REFUSAL and decision.refusal is not None:
            refused = self.wire.refusal(call.request, decision.refusal, blob=call.blob)
            self.send(connection, refused)
        elif decision.reply is not Reply.NEVER:
            self.send(connection, answer or b"")

    def _check(self, call: AdlsCall, op: str) -> None:
        self.keyring.check(call, op, self.host.now())

    def perform(self, call: AdlsCall, route: AdlsRoute) -> bytes:
        """Carry out a request and return the whole response, without weather."""
        try:
            self._check(call, route.op)
            _refuse_unsupported(call)
            if "suoid" in call.query:
                check_permissions(self.accounts[call.account], call, route.op)
            if route.op in _CONTENT and _needs_key(call):
                given = encryption(call.headers)
                self.accounts[call.account].check_cipher(call.filesystem, call.path, given)
            return route.handler(call)
        except store.Refusal as error:
            return self.wire.refusal(call.request, error, blob=call.blob)


def _create(account: store.AdlsAccount, filesystem: str) -> None:
    try:
        account.create_filesystem(filesystem)
    except store.Refusal as error:
        if error.code == "FilesystemAlreadyExists":
            return
        raise OptionError(f"filesystem {filesystem!r}: {error.message}") from error


def _refuse_unsupported(call: AdlsCall) -> None:
    headers = call.headers
    for name in _UNSUPPORTED:
        if name in headers:
            raise refusal("UnsupportedHeader", f"The header {name} is not supported here.")


def _needs_key(call: AdlsCall) -> bool:
    """Return whether a request must name the key of an encrypted file.

    A status query need not (Hadoop's tests), nor what writes a new blob.
    """
    query = call.query
    if call.blob:
        return query.get("comp") not in ("block", "blocklist")
    return not (call.method == "HEAD" and "action" in query)


class EmulatorThread(Running[AdlsEmulator]):
    """An emulator on a thread of its own, created by ``running_emulator``."""

    def __init__(self, emulator: AdlsEmulator, stop: asyncio.Event) -> None:
        super().__init__(emulator, stop)
        self.url = emulator.url
        self.account = emulator.account
        self.key = emulator.key
        self.connection_string = emulator.connection_string


@contextmanager
def running_emulator(**arguments: Any) -> Iterator[EmulatorThread]:
    """Run an ``AdlsEmulator`` on a thread, inside the block.

    Raises the errors of its ``start``.
    """
    with on_thread(partial(AdlsEmulator, **arguments), EmulatorThread, "adls-emulator") as running:
        yield running
