"""A pytest plugin for suites that start their server with Docker: it is running already.

``WITNESS_ENDPOINT`` is its URL. adlfs's tests find it in a module of constants.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from types import ModuleType

_AZURITE = "127.0.0.1:10000"


class Containers:
    """The containers of a Docker daemon, which are already running."""

    def run(self, image: str, command: str, **options: object) -> Containers:
        """Return a container."""
        return self

    def stop(self) -> None:
        """Leave the server to whoever has started it."""


class Client:
    """A client of Docker."""

    containers = Containers()


docker = ModuleType("docker")
vars(docker)["from_env"] = Client
sys.modules["docker"] = docker

_constants = vars(import_module("adlfs.tests.constants"))
for _name, _value in list(_constants.items()):
    if isinstance(_value, str):
        _constants[_name] = _value.replace(
            _AZURITE, os.environ["WITNESS_ENDPOINT"].partition("://")[2]
        )
