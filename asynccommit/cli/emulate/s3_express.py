"""The command ``emulate s3-express``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group

from asynccommit.cli.arguments import reporting
from asynccommit.cli.emulate import serving as common
from asynccommit.cli.output import Output

if TYPE_CHECKING:
    from asynccommit.testing.emulators.s3_express.emulator import ExpressEmulator
    from asynccommit.testing.models.fault_rules import Climate

PORT = 9445
BUCKET = "data--use1-az4--x-s3"


@reporting
def s3_express(
    output: Output,
    port: common.Port = PORT,
    address: common.Address = "127.0.0.1",
    bucket: Annotated[
        list[str] | None,
        typer.Option(
            "--bucket",
            "-b",
            metavar="NAME",
            help=f"Bucket to create, NAME--ZONE--x-s3. Repeatable. Default: {BUCKET}.",
        ),
    ] = None,
    latency: common.LatencyText = None,
    limit: Annotated[float | None, common.limit_option(503)] = None,
    lost: Annotated[str | None, common.lost_option("renames")] = None,
    config: Annotated[Path | None, common.config_option("latency, limit and faults")] = None,
    new_etags: Annotated[
        bool, typer.Option("--new-etags", help="Give a renamed object another etag.")
    ] = False,
    seed: common.Seed = 0,
) -> None:
    """Serve an emulator of directory buckets of S3 Express One Zone.

    Holds all data in memory. To change limits and faults while it runs, send
    requests to /_emulator on the same port.
    """
    climate = common.with_weather(_climate(config), latency, limit, lost, "rename")
    buckets = bucket or [BUCKET]
    emulator = _make(port, address, buckets, climate, seed, keeps_etag=not new_etags)
    common.serve(emulator, output, lambda: _facts(emulator), lambda: _welcome(emulator))


def _climate(config: Path | None) -> Climate:
    def load() -> Any:
        from asynccommit.testing.emulators import config
        from asynccommit.testing.emulators.s3_express import emulator  # noqa: F401  it needs the extra

        return config

    from asynccommit.testing.models.fault_rules import Climate

    loaded = common.imported(load)

    def read(text: bytes, name: str) -> Climate:
        from asynccommit.testing.models.s3.refusals import S3_EXPRESS

        found: Climate = loaded.read_weather(text, name, S3_EXPRESS)
        return found

    return common.read_config(config, read, Climate())


def _make(
    port: int, address: str, buckets: list[str], climate: Climate, seed: int, *, keeps_etag: bool
) -> ExpressEmulator:
    from asynccommit.testing.emulators.s3_express.emulator import ExpressEmulator
    from asynccommit.testing.models.s3.directory_bucket import DirectoryRules

    return ExpressEmulator(
        port=port,
        address=address,
        buckets=buckets,
        switches=DirectoryRules(keeps_etag=keeps_etag),
        climate=climate,
        seed=seed,
    )


def _facts(emulator: ExpressEmulator) -> dict[str, Any]:
    return {
        "endpoint": emulator.endpoint,
        "port": emulator.port,
        "buckets": list(emulator.buckets),
        "control": f"{emulator.endpoint}/_emulator",
    }


def _welcome(emulator: ExpressEmulator) -> Group:
    rows = {
        "url": emulator.endpoint,
        "buckets": ", ".join(emulator.buckets),
        "control": f"{emulator.endpoint}/_emulator/faults, weather, stats, reset",
    }
    lines = [
        "The key and the secret are both the word test. Clients reach it by:",
        f"  AWS_ENDPOINT_URL_S3={emulator.endpoint}    (AWS's SDKs, boto3, aiobotocore)",
        f'  {{"endpoint_url": "{emulator.endpoint}"}}    (storage option of asynccommit)',
    ]
    title = "An emulator of S3 Express One Zone is serving;"
    return common.shown(title, rows, lines)
