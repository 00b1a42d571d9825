"""``asynccommit emulate``: what it says, serves, refuses, and how it ends."""

from __future__ import annotations

import json
import signal
import socket
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from asynccommit.cli.emulate import app
from asynccommit.testing.emulators.adls.auth import DEVELOPMENT_KEY
from tests.support.schemas import check

COMMAND = [sys.executable, "-c", "from asynccommit.cli.emulate import app; app()"]


@contextmanager
def _serving(*options: str, store: str = "adls") -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [*COMMAND, store, "--port", "0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _facts(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Read the JSON value that is written once the emulator serves."""
    assert process.stdout is not None
    lines: list[str] = []
    while not lines or lines[-1] != "}\n":
        lines.append(process.stdout.readline())
        assert lines[-1], process.stderr and process.stderr.read()
    facts: dict[str, Any] = json.loads("".join(lines))
    check("emulate", facts)
    return facts


def _get(facts: dict[str, Any], name: str) -> Any:
    trusted = ssl.create_default_context(cafile=facts["ca_file"]) if "ca_file" in facts else None
    url = f"{facts['control']}/{name}"
    with urllib.request.urlopen(url, timeout=20, context=trusted) as answer:
        return json.load(answer)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_command_serves_until_it_is_told_to_stop(number: signal.Signals) -> None:
    """It says as JSON where it is, serves, and ends with 0 on either signal."""
    with _serving("--json", "-f", "data") as process:
        facts = _facts(process)
        assert _get(facts, "stats")["requests"] == {}
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)

    assert process.returncode == 0
    assert errors == ""
    assert facts["url"].endswith(f":{facts['port']}/devstoreaccount1")
    assert facts["filesystems"] == ["data"]
    assert DEVELOPMENT_KEY in facts["connection_string"]


def test_command_says_how_to_use_it() -> None:
    """For the SDK, for asynccommit and for Hadoop; and at the end what was asked."""
    with _serving("-f", "data") as process:
        assert process.stdout is not None
        said = ""
        while "createRemoteFileSystem" not in said:
            said += process.stdout.readline()
        process.terminate()
        _, errors = process.communicate(timeout=30)

    assert "abfs://data@devstoreaccount1.dfs.core.windows.net/path" in said
    assert "fs.azure.abfs.endpoint=127.0.0.1:" in said
    assert "DfsEndpoint=http://127.0.0.1:" in said
    assert "stopped after 0 requests" in errors


def test_command_makes_the_weather(tmp_path: Path) -> None:
    """Options add to the file; an account of one's own has its key kept."""
    config = tmp_path / "weather.json"
    config.write_text('{"faults": [{"kind": "before", "op": "list"}], "pages": {"page": 9}}')
    options = ["--latency", "1ms", "--limit", "100", "--lost", "2%", "--config", str(config)]

    with _serving("--json", *options, "--account", "mine", "--key", "a2V5", "--flat") as process:
        facts = _facts(process)
        weather, pages = _get(facts, "weather"), _get(facts, "pages")

    assert weather["limit"]["rate"] == 100
    assert weather["latency"] == {"model": "fixed", "seconds": 0.001}
    assert [fault["kind"] for fault in weather["faults"]] == ["before", "cut"]
    assert pages["page"] == 9
    assert facts["account"] == "mine"
    assert "connection_string" not in facts


def test_command_serves_onelake() -> None:
    """It names its items, no key, and what asynccommit takes."""
    items = ("--onelake", "My Sales/Orders.Lakehouse", "--onelake", "My Sales/Old.Warehouse")
    with _serving("--json", *items) as process:
        facts = _facts(process)
        assert (facts["account"], facts["filesystems"]) == ("onelake", ["My Sales"])
        assert "connection_string" not in facts
    with _serving(*items) as process:
        assert process.stdout is not None
        said = ""
        while "account_host" not in said:
            said += process.stdout.readline()
    assert "abfs://My Sales@onelake.dfs.fabric.microsoft.com/Orders.Lakehouse/Files/path" in said
    assert "My Sales/Orders.Lakehouse, My Sales/Old.Warehouse" in said


@pytest.mark.parametrize(
    "options, said",
    [
        (["--onelake", "Sales"], "'Sales' is not WORKSPACE/ITEM.TYPE"),
        (["--onelake", "Sales/a.Lakehouse", "-f", "data"], "leave out --account, --key"),
        (["--onelake", "Sales/a.Lakehouse", "--flat"], "beside --onelake"),
    ],
)
def test_onelake_has_items_and_nothing_else(options: list[str], said: str) -> None:
    """A container, a key or a flat namespace beside it is refused."""
    result = CliRunner().invoke(app, ["adls", "--port", "0", *options])
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


def test_port_in_use_is_named() -> None:
    """With what to do about it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(app, ["adls", "--port", str(port)])

    assert result.exit_code == 2
    assert f"127.0.0.1:{port} is in use: give another --port" in result.output


@pytest.mark.parametrize(
    "options, said",
    [
        (["--latency", "20"], "20ms"),
        (["--lost", "2"], "2%"),
        (["--config", "/nowhere/file.json"], "/nowhere/file.json cannot be read"),
        (["--account", "Mine"], "'Mine' is no account name"),
        (["--key", "secret!"], "is not valid base64"),
        (["--filesystem", "A"], "filesystem 'A'"),
        (["--address", "192.0.2.1"], "cannot listen on 192.0.2.1"),
    ],
)
def test_options_that_are_wrong_are_named(options: list[str], said: str) -> None:
    """Each with the option's name or value, and exit code 2."""
    result = CliRunner().invoke(app, ["adls", "--port", "0", *options])

    assert result.exit_code == 2
    assert said in result.output
    assert "secret" not in result.output


def test_errors_are_json_if_wanted() -> None:
    """As with every other command."""
    result = CliRunner().invoke(app, ["adls", "--json", "--latency", "20"])

    assert json.loads(result.stdout)["error"] == "usage"


# --- Google Cloud Storage --------------------------------------------------------------------


def test_command_serves_buckets_until_it_is_told_to_stop() -> None:
    """It says as JSON where it is, and what the environment of clients is to be."""
    with _serving("--json", "-b", "one", "-b", "two", "--hns", store="gcs") as process:
        facts = _facts(process)
        buckets = _get(facts, "buckets")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)

    assert (process.returncode, errors) == (0, "")
    assert facts["buckets"] == ["one", "two"]
    assert all(options["hns"] for options in buckets.values())
    assert facts["endpoint"] == f"http://127.0.0.1:{facts['port']}"
    assert facts["environ"] == {"STORAGE_EMULATOR_HOST": facts["endpoint"]}


def test_command_says_how_to_reach_its_buckets() -> None:
    """For the SDKs, for asynccommit and gcsfs, for Hadoop."""
    with _serving("-b", "data", store="gcs") as process:
        assert process.stdout is not None
        said = ""
        while "fs.gs.hierarchical" not in said:
            said += process.stdout.readline()
        process.terminate()
        _, errors = process.communicate(timeout=30)

    assert "STORAGE_EMULATOR_HOST=http://127.0.0.1:" in said
    assert "gs://data/path" in said
    assert '"token": "anon"' in said
    assert "fs.gs.storage.root.url=http://127.0.0.1:" in said
    assert "stopped after 0 requests" in errors


def test_command_makes_the_weather_of_buckets(tmp_path: Path) -> None:
    """Options add to the file, and so do buckets."""
    config = tmp_path / "weather.json"
    faults, buckets = [{"kind": "before", "op": "list"}], {"kept": {"versioning": True}}
    given = {"faults": faults, "buckets": buckets, "pages": {"page": 9}}
    config.write_text(json.dumps(given))
    options = ["--latency", "1ms", "--limit", "100", "--lost", "2%", "--config", str(config)]

    with _serving("--json", *options, "-b", "mine", store="gcs") as process:
        facts = _facts(process)
        found, pages, buckets = (_get(facts, name) for name in ("weather", "pages", "buckets"))

    assert found["limit"]["rate"] == 100
    assert [(fault["kind"], fault["op"]) for fault in found["faults"]] == [
        ("before", "list"),
        ("cut", "move"),
    ]
    assert pages["page"] == 9
    assert facts["buckets"] == ["kept", "mine"]
    assert buckets["kept"]["versioning"]


@pytest.mark.parametrize(
    "options, said",
    [
        (["--latency", "20"], "20ms"),
        (["--lost", "2"], "2%"),
        (["--config", "/nowhere/file.json"], "/nowhere/file.json cannot be read"),
        (["--bucket", "A!"], "bucket 'A!'"),
        (["--address", "192.0.2.1"], "cannot listen on 192.0.2.1"),
    ],
)
def test_options_of_buckets_that_are_wrong_are_named(options: list[str], said: str) -> None:
    """Each with the option's name or value, and exit code 2."""
    result = CliRunner().invoke(app, ["gcs", "--port", "0", *options])

    assert result.exit_code == 2
    assert said in result.output


# --- https -----------------------------------------------------------------------------------


@pytest.mark.parametrize("store", ["adls", "gcs"])
def test_command_serves_https(store: str) -> None:
    """With ``--tls`` the certificate of the CA is in a file until the command ends."""
    with _serving("--json", "--tls", store=store) as process:
        facts = _facts(process)
        ca = Path(facts["ca_file"])
        assert facts["endpoint"].startswith("https://127.0.0.1:")
        assert _get(facts, "stats")["requests"] == {}
        process.terminate()
        _, errors = process.communicate(timeout=30)

    assert (process.returncode, errors) == (0, "")
    assert not ca.exists()


@pytest.mark.parametrize("store", ["adls", "gcs"])
def test_command_says_how_to_trust_its_certificate(store: str, tmp_path: Path) -> None:
    """``--tls-ca`` names the file, which stays; clients of Python and Java are told how."""
    ca = tmp_path / "ca.pem"
    options = ["--tls-ca", str(ca), "--tls-name", f"{store}.test"]
    with _serving(*options, store=store) as process:
        assert process.stdout is not None
        said = ""
        while "javax.net.ssl.trustStore=" not in said:
            said += process.stdout.readline()
        process.terminate()
        process.communicate(timeout=30)

    assert f"SSL_CERT_FILE={ca} " in said
    assert f'"ca_file": "{ca}"' in said
    assert "use_ssl" not in said
    assert "always.use.https=false" not in said
    assert "http://" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["ca.pem"]
    ssl.create_default_context(cafile=str(ca))


@pytest.mark.parametrize(
    "options, said",
    [
        (["--tls-ca", "/nowhere/ca.pem"], "--tls-ca /nowhere/ca.pem cannot be written"),
        (["--tls-name", "a b"], "is not a host name"),
    ],
)
@pytest.mark.parametrize("store", ["adls", "gcs"])
def test_options_of_https_that_are_wrong_are_named(
    store: str, options: list[str], said: str
) -> None:
    """Each with the option's name or value, and exit code 2."""
    result = CliRunner().invoke(app, [store, "--port", "0", *options])

    assert result.exit_code == 2
    assert said in result.output


# --- the proxy of S3 -------------------------------------------------------------------------


def test_command_serves_a_proxy_until_it_is_told_to_stop(tmp_path: Path) -> None:
    """It says as JSON where it is and what is behind it; options add to the file's weather."""
    config = tmp_path / "weather.json"
    config.write_text('{"faults": [{"kind": "before", "op": "put_part"}]}')
    options = ["--latency", "1ms", "--limit", "100", "--lost", "2%", "--config", str(config)]

    with _serving("--json", "-t", "http://127.0.0.1:1", *options, store="s3-proxy") as process:
        facts = _facts(process)
        weather = _get(facts, "weather")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)

    assert (process.returncode, errors) == (0, "")
    assert facts["endpoint"] == f"http://127.0.0.1:{facts['port']}"
    assert facts["target"] == "http://127.0.0.1:1"
    assert (weather["limit"]["rate"], weather["latency"]["seconds"]) == (100, 0.001)
    assert [(fault["kind"], fault["op"]) for fault in weather["faults"]] == [
        ("before", "put_part"),
        ("cut", "complete_upload"),
    ]


def test_command_says_how_to_reach_the_proxy() -> None:
    """For the SDKs, for asynccommit, for Hadoop; and who keeps what is stored."""
    with _serving("-t", "http://127.0.0.1:1", store="s3-proxy") as process:
        assert process.stdout is not None
        said = ""
        while "fs.s3a.endpoint" not in said:
            said += process.stdout.readline()
        process.terminate()
        _, errors = process.communicate(timeout=30)

    assert "AWS_ENDPOINT_URL_S3=http://127.0.0.1:" in said
    assert '{"endpoint_url": "http://127.0.0.1:' in said
    assert "stored by the server behind it" in said
    assert "in memory" not in said
    assert "stopped after 0 requests" in errors


@pytest.mark.parametrize(
    "options, said",
    [
        (["--latency", "20"], "20ms"),
        (["--config", "/nowhere/file.json"], "/nowhere/file.json cannot be read"),
        (["--target", "127.0.0.1:5000"], "expected a URL such as http://127.0.0.1:9000"),
        (["--address", "192.0.2.1"], "cannot listen on 192.0.2.1"),
    ],
)
def test_options_of_the_proxy_that_are_wrong_are_named(options: list[str], said: str) -> None:
    """Each with the option's name or value, and exit code 2."""
    given = ["s3-proxy", "--port", "0", "--target", "http://127.0.0.1:1", *options]
    result = CliRunner().invoke(app, given)

    assert result.exit_code == 2
    assert said in result.output


def test_weather_of_the_proxy_is_all_that_its_file_holds(tmp_path: Path) -> None:
    """What belongs to a store is refused, with what is known."""
    config = tmp_path / "weather.json"
    config.write_text('{"buckets": ["data"]}')
    given = ["s3-proxy", "--target", "http://127.0.0.1:1", "--config", str(config)]
    result = CliRunner().invoke(app, given)

    assert result.exit_code == 2
    assert "there is no 'buckets'; known are faults, latency, limit" in result.output


# --- directory buckets -----------------------------------------------------------------------


def test_command_serves_directory_buckets_until_it_is_told_to_stop() -> None:
    """It says as JSON where it is and which buckets it has; a lost rename is one of its faults."""
    with _serving("--json", "--lost", "2%", "--new-etags", store="s3-express") as process:
        facts = _facts(process)
        weather = _get(facts, "weather")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)

    assert (process.returncode, errors) == (0, "")
    assert facts["buckets"] == ["data--use1-az4--x-s3"]
    assert [(fault["kind"], fault["op"]) for fault in weather["faults"]] == [("cut", "rename")]


def test_command_says_how_to_reach_directory_buckets() -> None:
    """For the SDKs and for asynccommit; with the key."""
    with _serving("-b", "rows--usw2-az1--x-s3", store="s3-express") as process:
        assert process.stdout is not None
        said = ""
        while "endpoint_url" not in said:
            said += process.stdout.readline()
        process.terminate()
        process.communicate(timeout=30)
    assert "rows--usw2-az1--x-s3" in said
    assert "the word test" in said
