"""A pytest plugin for the tests of Azure's SDK: their tools, which are on no registry.

The tests run as against a live account. The hosts of the service are resolved to the emulator,
whose port is in ``WITNESS_PORT``; ``WITNESS_KEY`` is the key of its accounts.
"""

from __future__ import annotations

import base64
import inspect
import json
import logging
import os
import random
import socket
import sys
from collections.abc import Callable
from functools import wraps
from io import StringIO
from types import ModuleType
from typing import Any, NamedTuple

from azure.core.credentials import AccessToken

# A token without a signature, with the ids of a user and a tenant.
_CLAIMS = {
    "oid": "5d56d308-df82-4266-ba63-ef1da3945873",
    "tid": "72f988bf-86f1-41af-91ab-2d7cd011db47",
}
_TOKEN = ".".join(
    base64.urlsafe_b64encode(json.dumps(part).encode()).decode("ascii").rstrip("=")
    for part in ({"alg": "none", "typ": "JWT"}, _CLAIMS, {})
)
_DOMAIN = "core.windows.net"
_YEAR_2100 = 4102444800


class Secret(NamedTuple):
    """A value that recordings would not contain."""

    secret: str


class Token:
    """A credential with a bearer token."""

    def get_token(self, *scopes: str, **options: object) -> AccessToken:
        """Return a token that does not expire."""
        return AccessToken(_TOKEN, _YEAR_2100)


class AsyncToken:
    """A credential with a bearer token, for asyncio."""

    async def get_token(self, *scopes: str, **options: object) -> AccessToken:
        """Return a token that does not expire."""
        return AccessToken(_TOKEN, _YEAR_2100)

    async def close(self) -> None:
        """Do nothing."""

    async def __aenter__(self) -> AsyncToken:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


class EnvironmentVariableLoader:
    """A decorator that passes accounts and keys to a test."""

    def __init__(self, directory: str, *, options: object = None, **values: str) -> None:
        self._values: dict[str, Any] = dict(values)
        for name in values:
            if name.endswith("_key"):
                self._values[name] = Secret(os.environ["WITNESS_KEY"])

    def __call__(self, test: Callable[..., Any]) -> Callable[..., Any]:
        """Return the test with its values."""
        kinds = [_.kind for _ in inspect.signature(test).parameters.values()]
        values = self._values if inspect.Parameter.VAR_KEYWORD in kinds else {}
        if inspect.iscoroutinefunction(test):

            @wraps(test)
            async def run_async(self: object, **given: object) -> None:
                await test(self, **given, **values)

            return _for_pytest(run_async, test)

        @wraps(test)
        def run(self: object, **given: object) -> None:
            test(self, **given, **values)

        return _for_pytest(run, test)


def _for_pytest(run: Callable[..., Any], test: Callable[..., Any]) -> Callable[..., Any]:
    """Show the test's own parameters, without the values, which are no fixtures."""
    parameters = inspect.signature(test).parameters.values()
    kept = [_ for _ in parameters if _.kind is not inspect.Parameter.VAR_KEYWORD]
    vars(run)["__signature__"] = inspect.Signature(kept)
    return run


def recorded_by_proxy(test: Callable[..., Any]) -> Callable[..., Any]:
    """Return the test as it is."""
    return test


class StorageRecordedTestCase:
    """A test case that runs against a live account."""

    is_live = True

    def is_playback(self) -> bool:
        """Return whether the service is a recording."""
        return False

    def account_url(self, account: str | Secret, service: str) -> str:
        """Return the URL of an account."""
        name = account.secret if isinstance(account, Secret) else account
        return f"https://{name}.{service}.{_DOMAIN}"

    def get_resource_name(self, prefix: str) -> str:
        """Return a new name."""
        return f"{prefix}{random.getrandbits(40):x}"

    def get_random_bytes(self, size: int) -> bytes:
        """Return bytes."""
        return random.Random(size).randbytes(size)

    def get_random_text_data(self, size: int) -> str:
        """Return text of ``size`` letters."""
        return "".join(random.Random(size).choices("abcdefghijklmnop", k=size))

    def get_datetime_variable(self, variables: object, name: str, value: object) -> object:
        """Return the value, which a recording would replace."""
        return value

    def get_credential(self, kind: object, *, is_async: bool = False) -> Token | AsyncToken:
        """Return a credential with a token."""
        return AsyncToken() if is_async else Token()

    def assertNamedItemInContainer(self, container: Any, name: str, msg: object = None) -> None:  # noqa: N802
        """Check that an item of this name is there."""
        assert name in [item.name for item in container], msg

    def generate_sas(self, make: Callable[..., str], *arguments: Any, **options: Any) -> str:
        """Return a shared access signature."""
        options.pop("fake_value", None)
        return make(*arguments, **options)


class LogCaptured:
    """The log of a block as text."""

    def __init__(self, test: object) -> None:
        self._text = StringIO()
        self._handler = logging.StreamHandler(self._text)
        self._logger = logging.getLogger("azure.storage")

    def __enter__(self) -> StringIO:
        self._logger.setLevel(logging.DEBUG)
        self._logger.addHandler(self._handler)
        return self._text

    def __exit__(self, *error: object) -> None:
        self._logger.removeHandler(self._handler)


class Parametrized:
    """A decorator that would pass a parameter to a recording."""

    def __call__(self, test: Callable[..., Any]) -> Callable[..., Any]:
        """Return the test as it is."""
        return test


def is_live() -> bool:
    """Return whether the service is no recording."""
    return True


def _module(name: str, **contents: object) -> None:
    module = ModuleType(name)
    vars(module).update(contents)
    sys.modules[name] = module


_module(
    "devtools_testutils",
    EnvironmentVariableLoader=EnvironmentVariableLoader,
    EnvironmentVariableOptions=dict,
    is_live=is_live,
    recorded_by_proxy=recorded_by_proxy,
)
_module("devtools_testutils.aio", recorded_by_proxy_async=recorded_by_proxy)
_module("devtools_testutils.fake_credentials", STORAGE_ACCOUNT_FAKE_KEY="")
_module(
    "devtools_testutils.storage",
    GenericTestProxyParametrize1=Parametrized,
    LogCaptured=LogCaptured,
    StorageRecordedTestCase=StorageRecordedTestCase,
)
_module(
    "devtools_testutils.storage.aio",
    AsyncStorageRecordedTestCase=StorageRecordedTestCase,
    GenericTestProxyParametrize1=Parametrized,
)

_getaddrinfo = socket.getaddrinfo


def _resolve(host: Any, port: Any, *rest: Any, **options: Any) -> Any:
    """Resolve the hosts of the service to the emulator, and all others as usual."""
    if str(host).endswith(_DOMAIN):
        host, port = "127.0.0.1", int(os.environ["WITNESS_PORT"])
    return _getaddrinfo(host, port, *rest, **options)


socket.getaddrinfo = _resolve
