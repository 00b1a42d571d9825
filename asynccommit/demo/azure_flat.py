"""Run the demo on an emulated flat account of Azure: block lists, a killed driver, lost answers."""

from __future__ import annotations

from pathlib import Path

from asynccommit.demo.emulated import losing, serving
from asynccommit.demo.flights import Say, prepare
from asynccommit.demo.outcome import StoreBehaviour
from asynccommit.demo.python_tasks import KilledAndResumed, ResumedOutcome

AZURE_FLAT_WEATHER = StoreBehaviour(latency="20ms", limit=20_000, lost="5%")
CONTAINER = "flights"
# The emulator counts the requests of both endpoints by the names of Data Lake Storage.
_NAMES = {
    "append": "Put Block",
    "create": "Put Blob",
    "delete": "Delete Blob",
    "flush": "Put Block List",
    "head": "Get Blob Properties",
    "list": "List Blobs",
    "list_filesystems": "Get Account Information",
    "read": "Get Blob, Get Block List",
}


def run_on_azure_flat(
    keep: Path | None = None,
    *,
    weather: StoreBehaviour = AZURE_FLAT_WEATHER,
    say: Say = print,
) -> ResumedOutcome:
    """Commit to an emulated flat account, kill the driver, and resume.

    Args:
        keep: directory for the log, new or empty; ``demo-out`` by default.
        weather: behaviour of the emulated store; responses are lost of block lists only.
        say: called with progress messages.

    Raises:
        OptionError: the directory is not empty, or an option is invalid.
        AsyncCommitError: the emulator or a process failed.
    """
    lost = losing("flush", weather.lost)
    log = prepare(keep) / "emulator.log"
    arguments = ["--flat", "-f", CONTAINER, "--latency", weather.latency]
    with serving("adls", [*arguments, "--limit", str(weather.limit)], log) as emulator:
        emulator.strike(lost)
        say(f"an emulator serves {emulator.endpoint}: {weather.latency} a response")
        facts = emulator.facts
        url = f"abfs://{CONTAINER}@{facts['account']}.dfs.core.windows.net/table"
        storage = {
            "connection_string": facts["connection_string"],
            "fs.azure.account.hns.enabled": "false",
        }
        job = KilledAndResumed(emulator, url, storage, "flush", "block lists", _NAMES)
        return job.go(str(log), say)
