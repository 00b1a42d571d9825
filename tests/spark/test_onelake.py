"""The whole road on OneLake: executors write by Hadoop's ABFS client with tokens, we commit.

The emulator is in its mode ``onelake`` behind a proxy, so that both clients use OneLake's own host,
over https. A server of the test gives Hadoop's client its tokens, as Entra ID would; the driver's
Python has a credential object.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from asynccommit.demo.adls import client_jar
from asynccommit.formats.success import COMMITTER, decode_success
from asynccommit.testing.emulators.adls.emulator import EmulatorThread, running_emulator
from asynccommit.testing.models.adls.nodes import find
from asynccommit.testing.models.adls.onelake import guid_of
from tests.support.abfs import token_conf_of, trusting, why_not
from tests.support.servers import Proxy
from tests.support.spark import run_script

pytestmark = [pytest.mark.spark, pytest.mark.full, pytest.mark.every(3, 1)]

ITEM = "Orders.Lakehouse"
WORKSPACES = ("Sales_1", "My Sales")
SCRIPT = """
import json
from types import SimpleNamespace

given = json.loads((scratch / "given.json").read_text())
made = builder(scratch).config("spark.jars", given["jar"])
for key, value in given["conf"].items():
    made.config(f"spark.hadoop.{key}", value)
token = SimpleNamespace(token="token", expires_on=4e9)
credential = SimpleNamespace(get_token=lambda *_: token)
made.config("spark.driver.extraJavaOptions", given["java"])
storage = {"credential": credential, "ca_file": str(scratch / "ca.pem"), "proxy": given["proxy"]}
spark = configure(made, storage_options=storage).getOrCreate()
frame = spark.range(20).selectExpr("id", "id % 3 as p").repartition(2)
told = {}
for root in given["roots"]:
    frame.write.partitionBy("p").parquet(root)
    frame.where("id < 3").write.mode("append").partitionBy("p").parquet(root)
    frame.where("id < 9").write.mode("overwrite").partitionBy("p").parquet(root)
    told[root] = sorted(row.id for row in spark.read.parquet(root).collect())
(scratch / "told.json").write_text(json.dumps(told))
spark.stop()
"""


class _Tokens(BaseHTTPRequestHandler):
    """Answers every request for a token with one."""

    def do_POST(self) -> None:
        """Give a token."""
        self.rfile.read(int(self.headers["content-length"]))
        body = json.dumps({"access_token": "token", "expires_in": "3600"}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def _token_endpoint() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Tokens) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/tenant/oauth2/token"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def tunnel(port: int) -> Iterator[int]:
    """Run a proxy that leads to a port, and yield its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def do(work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(timeout=30)

    proxy = Proxy(port)
    do(proxy.__aenter__())
    try:
        yield proxy.port
    finally:
        do(proxy.__aexit__())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture(scope="module")
def emulator() -> Iterator[EmulatorThread]:
    """OneLake with two workspaces."""
    if reason := why_not():
        pytest.skip(reason)
    with running_emulator(onelake={name: [ITEM] for name in WORKSPACES}, tls=True) as running:
        yield running


@pytest.mark.timeout(300)
def test_tables_below_managed_folders(emulator: EmulatorThread, tmp_path: Path) -> None:
    """By names with an underscore, and by GUIDs; written, appended to, overwritten.

    Hadoop's client cannot reach a workspace whose name has a space otherwise: it encodes it twice.
    """
    there = "onelake.dfs.fabric.microsoft.com"
    item = guid_of(f"My Sales/{ITEM}")
    roots = [
        f"abfs://Sales_1@{there}/{ITEM}/Tables/orders",
        f"abfs://{guid_of('My Sales')}@{there}/{item}/Tables/orders",
    ]
    with _token_endpoint() as endpoint, tunnel(emulator.port) as proxy:
        way = f"-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort={proxy}"
        given = {
            "jar": str(client_jar()),
            "conf": token_conf_of(emulator, endpoint),
            "roots": roots,
            "java": f"{trusting(emulator, tmp_path)} {way}",
            "proxy": f"http://127.0.0.1:{proxy}",
        }
        (tmp_path / "given.json").write_text(json.dumps(given))
        done = run_script(tmp_path, SCRIPT, timeout=200)
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads((tmp_path / "told.json").read_text()) == {
        root: list(range(9)) for root in roots
    }
    for workspace in WORKSPACES:
        account = emulator.do(lambda it: it.model)
        table = find(account.head_filesystem(workspace).root, f"{ITEM}/Tables/orders")
        assert table is not None
        assert table.children is not None
        assert {*table.children} == {"_SUCCESS", "p=0", "p=1", "p=2"}
        marker = decode_success(table.children["_SUCCESS"].read(), "_SUCCESS")
        assert (marker.committer, marker.success) == (COMMITTER, True)
