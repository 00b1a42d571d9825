"""The command ``emulate s3-proxy``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group

from asynccommit.cli.arguments import reporting
from asynccommit.cli.emulate import serving as common
from asynccommit.cli.output import Output

if TYPE_CHECKING:
    from asynccommit.testing.emulators.s3_proxy.emulator import S3Proxy
    from asynccommit.testing.models.fault_rules import Climate

PORT = 9444


@reporting
def s3_proxy(
    output: Output,
    target: Annotated[
        str,
        typer.Option(
            "--target", "-t", metavar="URL", help="URL of the S3 server behind the proxy."
        ),
    ],
    port: common.Port = PORT,
    address: common.Address = "127.0.0.1",
    latency: common.LatencyText = None,
    limit: Annotated[float | None, common.limit_option(503)] = None,
    lost: Annotated[str | None, common.lost_option("completed uploads")] = None,
    config: Annotated[Path | None, common.config_option("latency, limit and faults")] = None,
    seed: common.Seed = 0,
) -> None:
    """Serve a proxy that adds faults to an S3 server such as moto or MinIO.

    Requests are forwarded unchanged. To change limits and faults while it
    runs, send requests to /_emulator on the same port.
    """
    climate = common.with_weather(_climate(config), latency, limit, lost, "complete_upload")
    proxy = _make(target, port, address, climate, seed)
    common.serve(proxy, output, lambda: _facts(proxy), lambda: _welcome(proxy))


def _climate(config: Path | None) -> Climate:
    def load() -> Any:
        from asynccommit.testing.emulators import config
        from asynccommit.testing.emulators.s3_proxy import emulator as proxy  # noqa: F401  it needs the extra

        return config

    from asynccommit.testing.models.fault_rules import Climate

    loaded = common.imported(load)

    def read(text: bytes, name: str) -> Climate:
        from asynccommit.testing.emulators.s3_proxy.s3 import S3_HTTP

        found: Climate = loaded.read_weather(text, name, S3_HTTP)
        return found

    return common.read_config(config, read, Climate())


def _make(target: str, port: int, address: str, climate: Climate, seed: int) -> S3Proxy:
    from asynccommit.testing.emulators.s3_proxy.emulator import S3Proxy

    return S3Proxy(target, port=port, address=address, climate=climate, seed=seed)


def _facts(proxy: S3Proxy) -> dict[str, Any]:
    return {
        "endpoint": proxy.endpoint,
        "port": proxy.port,
        "target": proxy.target.url,
        "control": f"{proxy.endpoint}/_emulator",
    }


def _welcome(proxy: S3Proxy) -> Group:
    rows = {
        "url": proxy.endpoint,
        "target": proxy.target.url,
        "control": f"{proxy.endpoint}/_emulator/faults, weather, stats, reset",
    }
    lines = [
        "Clients take it for the server itself, with the same keys and buckets:",
        f"  AWS_ENDPOINT_URL_S3={proxy.endpoint}    (AWS's SDKs, boto3, aiobotocore)",
        f'  {{"endpoint_url": "{proxy.endpoint}"}}    (storage option of asynccommit)',
        f"  fs.s3a.endpoint={proxy.endpoint}    (Hadoop, Spark; fs.s3a.path.style.access=true)",
    ]
    title = "A proxy of S3 is serving;"
    return common.shown(title, rows, lines, "Data is stored by the server behind it.")
