"""The command ``emulate gcs``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group

from asynccommit.cli.arguments import reporting
from asynccommit.cli.emulate import certificates
from asynccommit.cli.emulate import serving as common
from asynccommit.cli.output import Output

if TYPE_CHECKING:
    from asynccommit.testing.emulators.gcs.config import GcsEmulatorSettings
    from asynccommit.testing.emulators.gcs.emulator import GcsEmulator

PORT = 4443


@reporting
def gcs(
    output: Output,
    port: common.Port = PORT,
    address: common.Address = "127.0.0.1",
    bucket: Annotated[
        list[str] | None,
        typer.Option("--bucket", "-b", metavar="NAME", help="Bucket to create. Repeatable."),
    ] = None,
    hns: Annotated[
        bool, typer.Option("--hns", help="Create the buckets with a hierarchical namespace.")
    ] = False,
    latency: common.LatencyText = None,
    limit: Annotated[float | None, common.limit_option(429)] = None,
    lost: Annotated[str | None, common.lost_option("moves")] = None,
    config: Annotated[
        Path | None, common.config_option("latency, limit, faults, buckets and pages")
    ] = None,
    seed: common.Seed = 0,
    data: common.Data = None,
    tls: certificates.UseTls = False,
    tls_ca: certificates.CaFile = None,
    tls_name: certificates.TlsNames = None,
) -> None:
    """Serve an emulator of Google Cloud Storage.

    Holds all data in memory; --data keeps a copy in a folder. To change
    limits and faults while it runs, send requests to /_emulator on the same
    port.
    """
    settings = _settings(config, bucket or [], hns)
    climate = common.with_weather(settings.climate, latency, limit, lost, "move")
    secured = certificates.wanted(tls, tls_ca, tls_name)
    emulator = _make(replace(settings, climate=climate), port, address, seed, secured, data)
    names = list(settings.buckets)
    with certificates.ca_file(emulator, tls_ca) as ca:
        common.serve(
            emulator,
            output,
            lambda: _facts(emulator, names, ca),
            lambda: _welcome(emulator, names, ca),
        )


def _settings(config: Path | None, buckets: list[str], hns: bool) -> GcsEmulatorSettings:
    """Return the settings of the file and the buckets of the command line."""

    def load() -> Any:
        from asynccommit.testing.emulators.gcs import config as gcs_config
        from asynccommit.testing.emulators.gcs import emulator as gcs  # noqa: F401  it needs the extra

        return gcs_config

    loaded = common.imported(load)
    settings: GcsEmulatorSettings = common.read_config(
        config, loaded.read_gcs_settings, loaded.GcsEmulatorSettings()
    )
    own = loaded.read_buckets({name: {"hns": hns} for name in buckets})
    return replace(settings, buckets={**settings.buckets, **own})


def _make(
    settings: GcsEmulatorSettings,
    port: int,
    address: str,
    seed: int,
    tls: bool | list[str],
    data: Path | None,
) -> GcsEmulator:
    from asynccommit.testing.emulators.gcs.emulator import GcsEmulator

    return GcsEmulator(
        port=port,
        address=address,
        buckets=settings.buckets,
        climate=settings.climate,
        pages=settings.pages,
        tls=tls,
        seed=seed,
        data=data,
    )


def _facts(emulator: GcsEmulator, buckets: list[str], ca: Path | None) -> dict[str, Any]:
    return {
        "endpoint": emulator.endpoint,
        "port": emulator.port,
        "buckets": buckets,
        "environ": emulator.environ,
        "control": f"{emulator.endpoint}/_emulator",
        **certificates.fact(ca),
    }


def _welcome(emulator: GcsEmulator, buckets: list[str], ca: Path | None) -> Group:
    places = "faults, weather, stats, tokens, pages, buckets, denied, reset"
    rows = {
        "url": emulator.endpoint,
        "buckets": ", ".join(buckets) or "none yet",
        "control": f"{emulator.endpoint}/_emulator/{places}",
        "retry tests": f"{emulator.endpoint}/retry_test",
        **certificates.row(ca),
    }
    title = "An emulator of Google Cloud Storage is serving;"
    return common.shown(title, rows, _how_to(emulator, next(iter(buckets), "BUCKET"), ca))


def _how_to(emulator: GcsEmulator, bucket: str, ca: Path | None) -> list[str]:
    from asynccommit.testing.emulators.gcs.emulator import client_conf

    endpoint = emulator.endpoint
    hadoop = [f"  {name}={value}" for name, value in client_conf(endpoint).items()]
    return [
        "Google's SDKs, gcloud-aio-storage, gcsfs and asynccommit find it in the environment:",
        f"  STORAGE_EMULATOR_HOST={endpoint}",
        "  GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT=false    (or gcsfs asks for folders by gRPC)",
        "",
        "asynccommit and gcsfs also take storage options, for gs URLs:",
        f"  gs://{bucket}/path",
        f'  {{"endpoint_url": "{endpoint}", "token": "anon"}}',
        *(() if ca is None else [f'  and for asynccommit "ca_file": "{ca}"']),
        "",
        "Hadoop and Spark (with spark.hadoop. before each name) take the same URLs with",
        "Google's connector and:",
        *hadoop,
        *(() if ca is None else certificates.how_to_trust(ca)),
    ]
