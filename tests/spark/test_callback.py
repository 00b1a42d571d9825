"""The callback on a port that every local user reaches: who is heard there, and who is not."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asynccommit.spark import callback
from asynccommit.spark.callback import SEAL_LENGTH, Callback, seal
from tests.support.spark import run_script

KEY = bytes(range(32))
NOBODY = 65534


@pytest.fixture
def heard() -> list[str]:
    """Return what requests have reached what answers them."""
    return []


@pytest.fixture
def guarded(heard: list[str]) -> Iterator[Callback]:
    """Yield a callback that answers ``{}``, as if no stranger had asked before."""
    callback._warn_of_strangers.cache_clear()

    def answer(text: str) -> str:
        heard.append(text)
        return "{}"

    yield Callback(answer, KEY)
    callback._warn_of_strangers.cache_clear()


def sealed(text: str, key: bytes = KEY) -> str:
    """Return a request as the JVM sends it."""
    return seal(key, "request", text) + text


def test_a_sealed_request_is_answered_with_a_seal(guarded: Callback, heard: list[str]) -> None:
    """The text without its seal is answered, and the seal of the answer belongs to this request."""
    request = sealed('{"p": "ü\\n\N{OLD ITALIC LETTER A}"}')
    reply = guarded.apply(request)

    assert heard == [request[SEAL_LENGTH:]]
    assert reply is not None
    assert reply[SEAL_LENGTH:] == "{}"
    assert reply[:SEAL_LENGTH] == seal(KEY, f"answer to {request[:SEAL_LENGTH]}", "{}")


def test_who_listens_is_proven_without_a_request(guarded: Callback, heard: list[str]) -> None:
    """The JVM asks who is there before it says anything, and no work is done for that."""
    request = sealed("5eed")

    assert guarded.apply(request) == seal(KEY, f"answer to {request[:SEAL_LENGTH]}", "")
    assert heard == []


@pytest.mark.parametrize(
    "request_",
    [
        '{"what": "commit"}',
        "",
        sealed("{}", b"\0" * 32),
        sealed("{}")[:SEAL_LENGTH] + '{"what": "commit"}',
        seal(KEY, "answer to " + "0" * SEAL_LENGTH, "{}") + "{}",
        "\udc80" * SEAL_LENGTH + "{}",
        "ü" * SEAL_LENGTH + "{}",
        sealed("{}").encode(),
        None,
        [sealed("{}")],
    ],
)
def test_any_other_request_is_not_read(
    guarded: Callback, heard: list[str], request_: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Without the right seal nothing is answered, and the log says so."""
    assert guarded.apply(request_) is None
    assert heard == []
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "{" not in caplog.text


def test_strangers_do_not_fill_the_log(guarded: Callback, caplog: pytest.LogCaptureFixture) -> None:
    """However often they ask, it is said once."""
    for _ in range(50):
        guarded.apply("{}")
    guarded.apply()
    guarded.apply("{}", "{}")

    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    "name",
    ["_answer", "_key", "__init__", "__setattr__", "__reduce_ex__", "__getattribute__", "leave"],
)
def test_nothing_but_the_interface_is_there(guarded: Callback, name: str) -> None:
    """Py4J calls whatever method it is told to; there is only the one that checks."""
    assert not hasattr(guarded, name)
    assert getattr(guarded, "__class__") is object  # noqa: B009  as Py4J does it
    assert repr(KEY) not in repr(guarded) + guarded.toString()


STRANGER = r"""
import json, os, socket, sys
port, private, mine = sys.argv[1:]
job = {"version": 1, "dest": f"file:{private}", "jobId": "j", "attempt": 0, "tasks": [], "conf": {}}
asked = []
for what in ("commit", "abort", "check"):
    text = json.dumps({**job, "what": what})
    asked += [f"s{text}", f"s{'0' * 64}{text}"]
lines = [f"c\np{n}\napply\n{text}\ne\n" for n in range(4) for text in asked]
lines += [f"c\np{n}\n{name}\ne\n" for n in range(4) for name in ("toString", "wait", "__init__")]
lines += [f"c\np{n}\n__setattr__\nsapply\nsx\ne\n" for n in range(4)]
lines += [f"g\np{n}\ne\n" for n in range(4) if mine == "ours"]
answers = set()
for line in lines:
    try:
        with socket.create_connection(("127.0.0.1", int(port)), 10) as channel:
            channel.settimeout(10)
            channel.sendall(line.encode())
            answers.add(channel.recv(1000).decode()[:40])
    except ConnectionError:
        answers.add("")
print(json.dumps(sorted(answers)))
"""

ATTACK = """
import json, logging, subprocess
private = scratch / "private"
private.mkdir(mode=0o700)
(private / "_temporary/j/00/manifests").mkdir(parents=True)
before = sorted(map(str, private.rglob("*")))
{start}
port = spark.sparkContext._gateway._callback_server.port
logging.basicConfig(filename=scratch / "log")
command = [*json.loads(os.environ["AS_NOBODY"]), sys.executable, "-I", "-c", os.environ["STRANGER"]]
told = subprocess.run([*command, str(port), str(private), {mine!r}], capture_output=True, text=True)
print(told.stdout, told.stderr, flush=True)
assert sorted(map(str, private.rglob("*"))) == before
spark.range(3).write.mode("append").parquet(str(scratch / "t"))
print(json.dumps([len(reports()), spark.read.parquet(str(scratch / "t")).count()]))
"""
FIRST = "spark = configure(builder(scratch)).getOrCreate()"
SECOND = """
from pyspark.java_gateway import ensure_callback_server_started
spark = builder(scratch).getOrCreate()
ensure_callback_server_started(spark.sparkContext._gateway)
configure(spark)
"""


def attack(scratch: Path, start: str, mine: str) -> tuple[list[str], list[int]]:
    """Have another user find the port of a session; return the answers, and what was committed."""
    other = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    can = os.geteuid() == 0 and shutil.which("setpriv") is not None
    can = can and subprocess.run([*other, sys.executable, "-V"]).returncode == 0
    environment = {
        "AS_NOBODY": json.dumps(other if can else []),  # else a process of this user must do
        "STRANGER": STRANGER,
    }
    body = ATTACK.format(start=start, mine=mine)
    done = run_script(scratch, body, environment=environment, timeout=150)
    assert done.returncode == 0, done.stderr
    answers, committed = (json.loads(line) for line in done.stdout.split("\n") if line.strip())
    return answers, committed


@pytest.mark.every(3)
@pytest.mark.full
@pytest.mark.spark
def test_another_user_is_not_even_heard(tmp_path: Path) -> None:
    """The callback server that is started here has the JVM authenticate, and nobody else can.

    Nor can another user take the callback away.
    """
    answers, committed = attack(tmp_path, FIRST, "ours")

    assert answers == [""]
    assert committed == [1, 3]


@pytest.mark.every(3)
@pytest.mark.full
@pytest.mark.spark
def test_another_user_is_refused_where_the_server_was_there(tmp_path: Path) -> None:
    """PySpark's own callback server hears everybody; requests to commit are still refused."""
    answers, committed = attack(tmp_path, SECOND, "PySpark's")

    assert all(
        not answer or answer.startswith(("!yn", "!x", "!ysasynccommit")) for answer in answers
    )
    assert "!yn\n" in answers
    assert committed == [1, 3]
    log = (tmp_path / "log").read_text()
    assert log.count("did not have the seal of this session") == 1


@pytest.mark.every(3)
@pytest.mark.full
@pytest.mark.spark
def test_a_stranger_in_pythons_place_gets_no_request(tmp_path: Path) -> None:
    """Who listens where Python did gets neither request nor credentials, and is not believed."""
    done = run_script(
        tmp_path,
        """
        from asynccommit.spark.callback import Callback
        from asynccommit.spark.sessions import CALLBACK, register
        spark = configure(builder(scratch)).getOrCreate()
        heard = []
        class Stranger:
            def apply(self, text):
                heard.append(text)
                return "0" * 64 + '{"ok": true}'
            class Java:
                implements = ["java.util.function.Function"]
        properties = spark._jvm.java.lang.System.getProperties()
        both = spark._jvm.java.util.ArrayList()
        both.add(Stranger())
        both.add(properties.get(CALLBACK)[1])
        properties.put(CALLBACK, both.toArray())
        try:
            frame = spark.range(3).write.option("fs.azure.account.key.x", "c2VjcmV0")
            frame.parquet(str(scratch / "t"))
        except Exception as error:
            print(str(error).splitlines()[0])
        assert len(heard) == 1 and len(heard[0]) < 100 and "{" not in heard[0], heard
        assert not (scratch / "t").exists()
        register(spark.sparkContext._gateway)
        spark.range(3).write.parquet(str(scratch / "t"))
        print(len(reports()))
        """,
    )

    assert done.returncode == 0, done.stderr
    error, count = done.stdout.splitlines()
    assert error.startswith("asynccommit: no answer from the Python driver")
    assert error.endswith("the answer was not Python's")
    assert count == "1"


@pytest.mark.spark
def test_the_key_is_nowhere_to_be_read(tmp_path: Path) -> None:
    """Neither logs, at any level, nor what Spark shows of a session's properties hold it."""
    done = run_script(
        tmp_path,
        """
        import base64, logging
        logging.basicConfig(level=logging.DEBUG, filename=scratch / "log")
        prepared = builder(scratch).config("spark.eventLog.enabled", "true")
        (scratch / "events").mkdir()
        prepared = prepared.config("spark.eventLog.dir", str(scratch / "events"))
        spark = configure(prepared).getOrCreate()
        spark.range(3).write.parquet(str(scratch / "t"))
        gateway = spark.sparkContext._gateway
        system = spark._jvm.java.lang.System.getProperties()
        assert "asynccommit.spark.callback" not in set(system.stringPropertyNames())
        shown = str(system.toString()) + str(spark.sparkContext.getConf().getAll())
        logged = (scratch / "log").read_text()
        assert len(logged) > 10000
        key = bytes(system.get("asynccommit.spark.callback")[1])
        token = gateway.callback_server_parameters.auth_token
        spark.stop()
        for path in (scratch / "events").rglob("*"):
            shown += path.read_bytes().decode("utf-8", "replace") if path.is_file() else ""
        for form in (key.hex(), base64.b64encode(key).decode(), repr(key)[2:-1], token):
            assert form not in logged, "log"
            assert form not in shown, "shown"
        print("ok")
        """,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["ok"]
