"""The command ``emulate adls``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group

from asynccommit.cli.arguments import reporting
from asynccommit.cli.emulate import certificates
from asynccommit.cli.emulate import serving as common
from asynccommit.cli.output import Output
from asynccommit.errors import OptionError

if TYPE_CHECKING:
    from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
    from asynccommit.testing.emulators.config import Settings

PORT = 10004
_PLAIN_HTTP = (
    "  fs.azure.always.use.https=false",
    "  fs.azure.networking.library=JDK_HTTP_URL_CONNECTION",
)


@reporting
def adls(
    output: Output,
    port: common.Port = PORT,
    address: common.Address = "127.0.0.1",
    account: Annotated[
        str | None, typer.Option(metavar="NAME", help="Account name. Default: devstoreaccount1.")
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Account key. Default: the well-known development key."),
    ] = None,
    filesystem: Annotated[
        list[str] | None,
        typer.Option(
            "--filesystem", "-f", metavar="NAME", help="Filesystem to create. Repeatable."
        ),
    ] = None,
    flat: Annotated[
        bool, typer.Option("--flat", help="Serve a flat account, without a hierarchical namespace.")
    ] = False,
    onelake: Annotated[
        list[str] | None,
        typer.Option(
            "--onelake",
            metavar="WORKSPACE/ITEM.TYPE",
            help="Serve OneLake (Microsoft Fabric) with this item. Repeatable.",
        ),
    ] = None,
    latency: common.LatencyText = None,
    limit: Annotated[float | None, common.limit_option(503)] = None,
    lost: Annotated[str | None, common.lost_option("renames")] = None,
    config: Annotated[
        Path | None, common.config_option("latency, limit, faults, accounts and pages")
    ] = None,
    seed: common.Seed = 0,
    data: common.Data = None,
    tls: certificates.UseTls = False,
    tls_ca: certificates.CaFile = None,
    tls_name: certificates.TlsNames = None,
) -> None:
    """Serve an emulator of ADLS Gen2.

    Holds all data in memory; --data keeps a copy in a folder. To change
    limits and faults while it runs, send requests to /_emulator on the same
    port.
    """
    settings = _settings(config, account, key)
    climate = common.with_weather(settings.climate, latency, limit, lost, "rename")
    names = (*settings.filesystems, *(filesystem or ()))
    settings = replace(settings, climate=climate, filesystems=names, flat=flat or settings.flat)
    if onelake is not None:
        _refuse_beside_onelake(settings, account or key)
        settings = replace(settings, onelake=_items_of(onelake))
    secured = certificates.wanted(tls, tls_ca, tls_name)
    emulator = _make(settings, port, address, seed, secured, data)
    with certificates.ca_file(emulator, tls_ca) as ca:
        common.serve(
            emulator,
            output,
            lambda: _facts(emulator, settings, ca),
            lambda: _welcome(emulator, settings, ca),
        )


def _settings(config: Path | None, account: str | None, key: str | None) -> Settings:
    """Read the settings, with the account of the command line first."""

    def load() -> Any:
        from asynccommit.testing.emulators import config

        return config

    loaded = common.imported(load)
    settings: Settings = common.read_config(config, loaded.read_settings, loaded.Settings())
    if account is None and key is None:
        return settings
    first_name, first_key = next(iter(settings.accounts.items()))
    name, secret = account or first_name, key or first_key
    loaded.check_account(name, secret)
    return replace(settings, accounts={name: secret})


def _items_of(places: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for place in places:
        workspace, _, item = place.partition("/")
        if not workspace or "." not in item or "/" in item:
            raise OptionError(
                f"{place!r} is not WORKSPACE/ITEM.TYPE, such as Sales/Orders.Lakehouse"
            )
        found.setdefault(workspace, []).append(item)
    return found


def _refuse_beside_onelake(settings: Settings, account: str | None) -> None:
    if account or settings.flat or settings.filesystems:
        raise OptionError(
            "OneLake is one account without keys, whose filesystems are its workspaces: leave out "
            "--account, --key, --filesystem and --flat beside --onelake"
        )


def _make(
    settings: Settings,
    port: int,
    address: str,
    seed: int,
    tls: bool | list[str],
    data: Path | None,
) -> AdlsEmulator:
    from asynccommit.testing.emulators.adls.emulator import AdlsEmulator

    return AdlsEmulator(
        port=port,
        address=address,
        accounts=settings.accounts,
        filesystems=settings.filesystems,
        hns=not settings.flat,
        onelake=settings.onelake,
        climate=settings.climate,
        pages=settings.pages,
        tls=tls,
        seed=seed,
        data=data,
    )


def _facts(emulator: AdlsEmulator, settings: Settings, ca: Path | None) -> dict[str, Any]:
    """Return what a program needs; a key that was given is not repeated."""
    facts = {
        "url": emulator.url,
        "endpoint": emulator.endpoint,
        "port": emulator.port,
        "account": emulator.account,
        "accounts": list(emulator.accounts),
        "filesystems": list(dict.fromkeys(settings.filesystems)),
        "control": f"{emulator.endpoint}/_emulator",
        **certificates.fact(ca),
    }
    if settings.onelake is not None:
        facts["filesystems"] = list(settings.onelake)
    elif _is_known(emulator):
        facts["connection_string"] = emulator.connection_string
    return facts


def _is_known(emulator: AdlsEmulator) -> bool:
    from asynccommit.testing.emulators.adls.auth import DEVELOPMENT_KEY

    return emulator.key == DEVELOPMENT_KEY


def _welcome(emulator: AdlsEmulator, settings: Settings, ca: Path | None) -> Group:
    rows = {
        "url": emulator.url,
        "account": emulator.account,
        **_stored(emulator, settings),
        "control": f"{emulator.endpoint}/_emulator/faults, weather, stats, tokens, pages, reset",
        **certificates.row(ca),
    }
    if settings.onelake is not None:
        title = "An emulator of OneLake is serving;"
        return common.shown(title, rows, _how_to_onelake(emulator, settings.onelake, ca))
    title = "An emulator of ADLS Gen2 is serving;"
    return common.shown(title, rows, _how_to(emulator, settings, ca))


def _stored(emulator: AdlsEmulator, settings: Settings) -> dict[str, str]:
    if settings.onelake is not None:
        items = [f"{name}/{item}" for name, found in settings.onelake.items() for item in found]
        return {"items": ", ".join(items)}
    return {
        "key": emulator.key if _is_known(emulator) else "the given key",
        "filesystems": ", ".join(dict.fromkeys(settings.filesystems)) or "none yet",
    }


def _how_to_onelake(
    emulator: AdlsEmulator, items: Mapping[str, Collection[str]], ca: Path | None
) -> list[str]:
    workspace, found = next(iter(items.items()))
    host = emulator.endpoint.partition("://")[2]
    own = '"use_ssl": False' if ca is None else f'"ca_file": "{ca}"'
    return [
        "asynccommit takes abfs URLs with these storage options, and any token:",
        f"  abfs://{workspace}@onelake.dfs.fabric.microsoft.com/{next(iter(found))}/Files/path",
        f'  {{"credential": CREDENTIAL, "account_host": "{host}", {own}}}',
        *(() if ca is None else certificates.how_to_trust(ca)),
    ]


def _how_to(emulator: AdlsEmulator, settings: Settings, ca: Path | None) -> list[str]:
    host = emulator.endpoint.partition("://")[2]
    secret = emulator.connection_string
    if not _is_known(emulator):
        secret = secret.replace(emulator.key, "KEY")
    domain = f"{emulator.account}.dfs.core.windows.net"
    filesystem = next(iter(settings.filesystems), "FILESYSTEM")
    own = '"use_ssl": False' if ca is None else f'"ca_file": "{ca}"'
    return [
        "The Azure SDK and adlfs take the connection string:",
        f"  {secret}",
        "",
        "asynccommit takes abfs URLs with these storage options:",
        f"  abfs://{filesystem}@{domain}/path",
        f'  {{"account_key": KEY, "account_host": "{host}", {own}}}',
        "",
        "Hadoop and Spark (with spark.hadoop. before each name) take the same URLs with:",
        f"  fs.azure.abfs.endpoint={host}",
        *(_PLAIN_HTTP if ca is None else ()),
        f"  fs.azure.account.auth.type.{domain}=SharedKey",
        f"  fs.azure.account.key.{domain}=KEY",
        "  fs.azure.createRemoteFileSystemDuringInitialization=true",
        *(() if ca is None else certificates.how_to_trust(ca)),
    ]
