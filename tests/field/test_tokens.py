"""A driver without Python commits for longer than a token lives, through its JVM's client."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from asynccommit.demo.adls import client_jar
from asynccommit.testing.emulators.adls.emulator import (
    AdlsEmulator,
    EmulatorThread,
    running_emulator,
)
from asynccommit.testing.models.adls.nodes import find
from tests.field import drivers
from tests.field.belongings import jars
from tests.field.cells import LOCAL, TIMEOUT_ON_CLUSTERS
from tests.field.environments import environment, installed_line
from tests.field.place import Place
from tests.spark.test_onelake import tunnel
from tests.support.abfs import token_conf_of, trusting, why_not

pytestmark = [
    pytest.mark.every(3),
    pytest.mark.full,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(900),
]

WORKSPACE, TABLE = "Sales", "Orders.Lakehouse/Tables/flights"
URL = f"abfs://{WORKSPACE}@onelake.dfs.fabric.microsoft.com/{TABLE}"
MARGIN = 300  # seconds before the end of a token when Hadoop's client asks for another
FRESH, LIFE = 3, 15  # seconds for which a token is sent, and for which it is taken


class Tokens:
    """A source of short-lived tokens for Hadoop's client.

    Args:
        emulator: the store; it refuses those that have ended.

    Attributes:
        given: how many tokens were given.
        renewed: how many of them in the middle of the commit.
    """

    def __init__(self, emulator: EmulatorThread) -> None:
        self._emulator = emulator
        self._times: dict[str, float] = {}
        self.given = self.renewed = 0

    def give(self) -> str:
        """Return a token; older ones end."""
        now, self.given = time.monotonic(), self.given + 1
        token = f"token-{self.given}"
        ended = {old for old, given in self._times.items() if now - given > LIFE}
        self._times[token] = now
        names = self._emulator.do(lambda it: self._end(it, ended))
        self.renewed += "day=0" in names and "_SUCCESS" not in names
        return token

    def _end(self, emulator: AdlsEmulator, ended: set[str]) -> set[str]:
        emulator.keyring.expired |= ended
        table = find(emulator.model.head_filesystem(WORKSPACE).root, TABLE)
        return set((table and table.children) or ())

    @contextmanager
    def served(self) -> Iterator[str]:
        """Serve them; yield the URL."""
        tokens = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                told = {"access_token": tokens.give(), "expires_in": str(MARGIN + FRESH)}
                body = json.dumps(told).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        with HTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                yield f"http://127.0.0.1:{server.server_port}/tenant/oauth2/token"
            finally:
                server.shutdown()
                thread.join()


def test_tokens_are_renewed_in_the_middle_of_a_childs_commit(tmp_path: Path) -> None:
    """The engine asks the JVM over frames, and each request has a token that has not ended."""
    if reason := why_not():
        pytest.skip(reason)
    place = Place(tmp_path, environment(installed_line()), LOCAL, jars(), TIMEOUT_ON_CLUSTERS)
    with running_emulator(onelake={WORKSPACE: ["Orders.Lakehouse"]}, tls=True) as emulator:
        tokens = Tokens(emulator)
        with tokens.served() as endpoint, tunnel(emulator.port) as proxy:
            way = f"-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort={proxy}"
            place.settings |= {
                "spark.asynccommit.rate": "2",
                "spark.asynccommit.store": "jvm",
                # Hadoop's client leaves threads that keep a JVM alive.
                "spark.submit.callSystemExitOnMainExit": "true",
                "spark.driver.extraJavaOptions": f"{trusting(emulator, tmp_path)} {way}",
                **{f"spark.hadoop.{k}": v for k, v in token_conf_of(emulator, endpoint).items()},
            }
            drivers.prepare(place)
            path = ("--driver-class-path", str(client_jar()), "--class", drivers.SCALA)
            jar = str(drivers.jar_of(place.environment))
            said = place.run("spark-submit", "--master", LOCAL, *path, jar, URL)

        assert "rows: 1000" in said
        assert "token-1" in emulator.do(lambda it: it.keyring.expired)
        assert tokens.renewed >= 2, f"of {tokens.given} tokens"
