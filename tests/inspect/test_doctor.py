"""The doctor says what is there, what a store does, and what to do about a problem."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from asynccommit.inspect.doctor import (
    Check,
    Diagnosis,
    check_java,
    check_machine,
    check_place,
    committer_for,
    refused,
    umask,
)
from asynccommit.stores.base import Traits
from asynccommit.stores.urls import parse_url
from asynccommit.testing import Fault
from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from asynccommit.testing.emulators.gcs.emulator import GcsEmulator
from asynccommit.testing.pytest_plugin import adls_emulator, gcs_emulator
from tests.engine.conftest import Place, place
from tests.engine.conftest import on as on_kinds

__all__ = ["adls_emulator", "gcs_emulator", "place"]


def _java(folder: Path, said: str) -> dict[str, str]:
    program = folder / "bin/java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    program.chmod(0o755)
    return {"JAVA_HOME": str(folder)}


@pytest.mark.parametrize(
    "said, ok",
    [
        ('openjdk version "17.0.1" 2021-10-19', True),
        ('java version "21" 2023-09-19', True),
        ('java version "1.8.0_292"', False),
        ("nonsense", False),
    ],
)
def test_java_is_new_enough(tmp_path: Path, said: str, ok: bool) -> None:
    """Java 17 and newer is fine; anything else is a problem with a remedy."""
    check = check_java(_java(tmp_path, said))
    assert check.ok is ok
    assert said in check.found
    assert ok or "install Java 17" in check.remedy


def test_java_that_is_missing_is_only_a_fact() -> None:
    """Without Spark no Java is needed."""
    for environ in ({"PATH": "/nowhere"}, {"JAVA_HOME": "/nowhere"}):
        check = check_java(environ)
        assert check.ok is None
        assert "JAVA_HOME" in check.remedy


def test_packages_are_named_with_their_versions() -> None:
    """Each optional package has its version, or the extra to install."""
    checks = {check.name: check for check in check_machine()}
    assert checks["asynccommit"].found
    assert checks["aiohttp"].found[0].isdigit()


async def _checks(url: str, write: bool = True, **storage: Any) -> dict[str, Check]:
    found = [check async for check in check_place(parse_url(url), storage, write=write)]
    return {check.name: check for check in found}


async def test_a_directory_is_probed_and_left_as_it_was(tmp_path: Path) -> None:
    """Writes, conditions and renames are tried below the destination, and nothing stays."""
    checks = await _checks(str(tmp_path))
    assert {name for name, check in checks.items() if check.ok} == {
        *("destination", "store", "write", "clock"),
        *("no overwrite", "no replacing rename", "rename"),
    }
    assert not list(tmp_path.iterdir())

    read = await _checks(str(tmp_path / "none"), write=False)
    assert "does not exist yet" in read["destination"].found
    assert "write" not in read


async def test_a_destination_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    """Spark's default mode would refuse to write to it after the check."""
    checks = await _checks(str(tmp_path / "none"))

    assert checks["write"].ok is True
    assert not list(tmp_path.iterdir())


def test_umask_is_told_and_left() -> None:
    """It is that of this process, in octal."""
    before = os.umask(0o027)
    try:
        assert umask() == 0o027
        checks = {check.name: check for check in check_machine()}
        assert checks["umask"].found.startswith("027")
    finally:
        assert os.umask(before) == 0o027


def test_table_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """In eighty columns no line is longer, and a long text goes on below its column."""
    monkeypatch.setenv("COLUMNS", "80")
    shown = repr(Diagnosis([Check("class on executors", "y " + "x" * 90, ok=True)])).splitlines()

    assert max(len(line) for line in shown) == 80
    assert {line.find("x") for line in shown[1:]} == {24}


async def test_an_account_is_probed(adls_emulator: AdlsEmulator) -> None:
    """The same on ADLS, whose refusals are problems with the message of the service."""
    adls_emulator.model.create_filesystem("data")
    url = f"abfs://data@{adls_emulator.account}.dfs.core.windows.net/"
    options: dict[str, Any] = {"connection_string": adls_emulator.connection_string}

    checks = await _checks(url, **options)
    assert all(check.ok is not False for check in checks.values())
    assert checks["committer"].found.startswith("manifest")
    assert checks["credentials"].found == "option connection_string"
    assert not adls_emulator.model.list("data", "").entries

    adls_emulator.weather.add(Fault("before", code="AuthorizationPermissionMismatch"))
    denied = await _checks(url, **options)
    assert denied["store"].ok is False
    assert "AuthorizationPermissionMismatch" in denied["store"].found


async def test_a_bucket_is_probed(gcs_emulator: GcsEmulator) -> None:
    """The same in a bucket of Google Cloud Storage."""
    gcs_emulator.service.create_bucket("data")
    endpoint = f"http://127.0.0.1:{gcs_emulator.port}"

    checks = await _checks("gs://data/out", endpoint_url=endpoint, token="anon")

    assert all(check.ok is not False for check in checks.values())
    assert not gcs_emulator.service.list("data").items


def test_the_default_committer_is_told() -> None:
    """The committer follows from what the store can do."""
    assert committer_for(Traits("x")).startswith("manifest: ")
    assert committer_for(Traits("x", atomic_rename=False)).startswith("magic: ")


@on_kinds(["local"])
async def test_a_condition_that_is_ignored_is_a_problem(place: Place) -> None:
    """A write that replaces although it must not is named with the remedy."""

    async def ignored() -> None:
        await place.write({"a": "replaced"})

    check = await refused("no overwrite", ignored)
    assert check.ok is False
    assert "do not commit there" in check.remedy


def test_settings_are_in_lines_of_their_own() -> None:
    """However narrow the table is, a setting is not wrapped, so that it can be copied."""
    line = "spark.jars.packages " + "org.apache.hadoop:hadoop-aws:3.5.0," * 5
    missing = Check("client of s3a", "missing", None, "load it", [line])
    found = Diagnosis([Check("Java", "17", ok=True), missing])

    assert found.ok
    assert f"    {line}" in repr(found).splitlines()
    assert not Diagnosis([Check("Java", "8", ok=False)]).ok
