"""The fixtures, as the test suites of other projects have them."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from asynccommit.testing.emulators.adls.emulator import (
    AdlsEmulator,
    EmulatorThread,
    running_emulator,
)
from asynccommit.testing.emulators.gcs.emulator import (
    GcsEmulator,
    GcsEmulatorThread,
    running_gcs_emulator,
)
from asynccommit.testing.pytest_plugin import MakeProxy, MakeProxyThread


async def test_fixture_serves_on_the_loop_of_the_test(adls_emulator: AdlsEmulator) -> None:
    """It has an address, and the model can be looked into."""
    adls_emulator.model.create_filesystem("data")

    assert adls_emulator.url == f"http://127.0.0.1:{adls_emulator.port}/devstoreaccount1"
    assert adls_emulator.url in adls_emulator.connection_string


def test_fixture_on_a_thread_serves_tests_that_block(adls_emulator_thread: EmulatorThread) -> None:
    """What is done through it is done between two requests."""
    adls_emulator_thread.do(lambda emulator: emulator.model.create_filesystem("data"))

    with urllib.request.urlopen(f"{adls_emulator_thread.endpoint}/_emulator/stats") as answer:
        assert json.load(answer)["requests"] == {}


def test_thread_takes_the_emulator_s_arguments() -> None:
    """And ends with the block."""
    with running_emulator(hns=False, seed=3) as emulator:
        assert not emulator.do(lambda inner: inner.model.hns)


def test_thread_that_cannot_start_says_why(adls_emulator_thread: EmulatorThread) -> None:
    """What is raised there is raised here."""
    port = adls_emulator_thread.port

    with pytest.raises(OSError, match="in use"), running_emulator(port=port):
        pass


def test_fixture_of_async_tests_says_so_in_another(tmp_path: Path) -> None:
    """A test that is not async would wait for ever: it is told what to take instead."""
    test = tmp_path / "test_sync.py"
    fixture = "from asynccommit.testing.pytest_plugin import adls_emulator\n"
    test.write_text(f"{fixture}def test_it(adls_emulator):\n    pass\n")
    options = ["-p", "no:cacheprovider", "-q"]

    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--rootdir", str(tmp_path), str(test)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        timeout=50,
    )

    assert "use adls_emulator_thread" in done.stdout


async def test_fixture_of_buckets_serves_on_the_loop_of_the_test(gcs_emulator: GcsEmulator) -> None:
    """It has an address, and the model can be looked into."""
    gcs_emulator.service.create_bucket("data")

    assert gcs_emulator.environ == {"STORAGE_EMULATOR_HOST": gcs_emulator.endpoint}
    assert gcs_emulator.endpoint == f"http://127.0.0.1:{gcs_emulator.port}"


def test_fixture_of_buckets_on_a_thread(gcs_emulator_thread: GcsEmulatorThread) -> None:
    """What is done through it is done between two requests."""
    gcs_emulator_thread.do(lambda emulator: emulator.service.create_bucket("data"))
    url = f"{gcs_emulator_thread.endpoint}/storage/v1/b/data"

    with urllib.request.urlopen(url) as answer:
        assert json.load(answer)["name"] == "data"


def test_thread_of_buckets_takes_the_emulator_s_arguments() -> None:
    """And ends with the block."""
    with running_gcs_emulator(buckets=["one", "two"], seed=3) as emulator:
        assert emulator.do(lambda inner: inner.bucket) == "one"
        assert emulator.environ["STORAGE_EMULATOR_HOST"] == emulator.endpoint


async def test_fixture_puts_proxies_before_servers(s3_proxy: MakeProxy) -> None:
    """As many as a test wants, each with arguments of its own."""
    one, other = await s3_proxy("http://127.0.0.1:1"), await s3_proxy("http://h:2", seed=3)

    assert one.endpoint != other.endpoint
    assert (one.target.url, other.target.url) == ("http://127.0.0.1:1", "http://h:2")


def test_fixture_of_proxies_on_threads(
    s3_proxy_thread: MakeProxyThread, adls_emulator_thread: EmulatorThread
) -> None:
    """What is asked of the proxy the server answers."""
    proxy = s3_proxy_thread(adls_emulator_thread.endpoint)

    with (
        pytest.raises(urllib.error.HTTPError) as refused,
        urllib.request.urlopen(f"{proxy.endpoint}/devstoreaccount1/data"),
    ):
        pass
    refused.value.close()

    assert refused.value.headers["x-ms-error-code"]
    assert proxy.do(lambda it: dict(it.forwarded)) == {"get": 1}
