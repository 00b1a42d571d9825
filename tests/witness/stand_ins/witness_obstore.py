"""A pytest plugin for obstore's own tests: a cloud store where they use one in memory.

``WITNESS_STORE`` is ``azure`` or ``gcs``, and ``WITNESS_ENDPOINT`` the URL of the emulator. Each
store is a container or bucket of its own.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import urllib.request
from types import ModuleType
from typing import Any

import obstore.store

_NUMBERS = itertools.count(1)
_CLIENT = {"allow_http": True}
_ENDPOINT = os.environ["WITNESS_ENDPOINT"]


def _send(method: str, url: str, body: bytes = b"", **headers: str) -> None:
    request = urllib.request.Request(url, body, headers, method=method)
    urllib.request.urlopen(request).close()


def _azure(name: str) -> Any:
    account, key = os.environ["WITNESS_ACCOUNT"], os.environ["WITNESS_KEY"]
    headers = {"Authorization": "Bearer any", "x-ms-version": "2024-11-04"}
    _send("PUT", f"{_ENDPOINT}/{account}/{name}?restype=container", b"", **headers)
    return obstore.store.AzureStore(
        name,
        account_name=account,
        account_key=key,
        endpoint=f"{_ENDPOINT}/{account}",
        client_options=_CLIENT,
    )


def _gcs(name: str) -> Any:
    body = json.dumps({"name": name}).encode()
    headers = {"Content-Type": "application/json"}
    _send("POST", f"{_ENDPOINT}/storage/v1/b?project=any", body, **headers)
    account = {"gcs_base_url": _ENDPOINT, "disable_oauth": True, "client_email": ""}
    account |= {"private_key": "", "private_key_id": ""}
    return obstore.store.GCSStore(
        name, service_account_key=json.dumps(account), client_options=_CLIENT
    )


def new_store() -> Any:
    """Return a store in a new container or bucket."""
    make = _azure if os.environ["WITNESS_STORE"] == "azure" else _gcs
    return make(f"obstore-{os.getpid()}-{next(_NUMBERS)}")


vars(obstore.store)["MemoryStore"] = new_store

# Their conftest starts MinIO, for tests that are left out.
for _name, _contents in {"docker": {}, "minio": {"Minio": object}}.items():
    _module = ModuleType(_name)
    vars(_module).update(_contents)
    sys.modules.setdefault(_name, _module)
