"""Hadoop's own client of Google Cloud Storage, led to an emulator.

It has no option for the endpoint. So a proxy connects it to an emulator that has a certificate for
``storage.googleapis.com``, and a service account asks a token server of this machine.
"""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyio.from_thread import start_blocking_portal

from asynccommit.demo.hadoop_jars import cached_jar, hadoop_version
from asynccommit.errors import UnsupportedError
from asynccommit.testing.emulators.gcs.emulator import GcsEmulatorThread, running_gcs_emulator
from tests.support.google import IdentityServer, service_account
from tests.support.hadoop import java_command
from tests.support.servers import Proxy

FIRST = (3, 5)
"""The first Hadoop that has the client."""
_PASSWORD = "changeit"


def client_jar() -> Path:
    """Return the jar of the client, of the version of PySpark's Hadoop, fetched if needed.

    Raises ``UnsupportedError`` that says what is missing.
    """
    version = hadoop_version()
    if tuple(map(int, version.split(".")[:2])) < FIRST:
        raise UnsupportedError(f"Hadoop {version} has no client of Google Cloud Storage")
    return cached_jar(coordinates(), f"hadoop-gcp-{version}.jar")


def coordinates() -> str:
    """Return what Maven calls the client of PySpark's Hadoop."""
    return f"org.apache.hadoop:hadoop-gcp:{hadoop_version()}"


@functools.cache
def why_not() -> str | None:
    """Return why there is no client to test with, or ``None`` if there is one."""
    if java_command() is None or shutil.which("keytool") is None:
        return "needs java and keytool"
    try:
        client_jar()
    except UnsupportedError as error:
        return str(error)
    return None


@dataclass(frozen=True)
class Google:
    """An emulator in the place of Google, with what reaches it.

    Attributes:
        emulator: the emulator, over https.
        conf: settings of a Spark whose JVM reaches it.
        storage_options: options of this package that reach it.
    """

    emulator: GcsEmulatorThread
    conf: Mapping[str, str]
    storage_options: Mapping[str, Any]


@contextmanager
def in_place_of_google(scratch: Path, **arguments: Any) -> Iterator[Google]:
    """Run an emulator that Hadoop's client takes for Google; its arguments may follow."""
    with running_gcs_emulator(tls=True, **arguments) as emulator, start_blocking_portal() as portal:
        certificate, trust = scratch / "ca.pem", scratch / "trust.p12"
        assert emulator.ca_pem is not None
        certificate.write_bytes(emulator.ca_pem)
        _import(certificate, trust)
        port = int(emulator.endpoint.rpartition(":")[2])
        with (
            portal.wrap_async_context_manager(Proxy(port)) as proxy,
            portal.wrap_async_context_manager(IdentityServer()) as tokens,
        ):
            key = scratch / "key.json"
            account = service_account(f"http://127.0.0.1:{tokens.port}/token", client_id="1")
            key.write_text(json.dumps(account))
            options = {
                "endpoint_url": emulator.endpoint,
                "ca_file": str(certificate),
                "token": "anon",
            }
            yield Google(emulator, _conf(proxy.port, trust, key), options)


def _import(certificate: Path, trust: Path) -> None:
    command = ["keytool", "-importcert", "-noprompt", "-file", str(certificate)]
    command += ["-keystore", str(trust), "-storepass", _PASSWORD]
    subprocess.run(command, check=True, capture_output=True)


def _conf(proxy: int, trust: Path, key: Path) -> Mapping[str, str]:
    java = {
        "https.proxyHost": "127.0.0.1",
        "https.proxyPort": str(proxy),
        "javax.net.ssl.trustStore": str(trust),
        "javax.net.ssl.trustStorePassword": _PASSWORD,
    }
    return {
        "spark.driver.extraJavaOptions": " ".join(f"-D{name}={java[name]}" for name in java),
        "spark.hadoop.fs.gs.project.id": "emulated",
        "spark.hadoop.fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE",
        "spark.hadoop.fs.gs.auth.service.account.json.keyfile": str(key),
    }
