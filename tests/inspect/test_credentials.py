"""The place of credentials is named, in the order of the stores, and no value is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from asynccommit.inspect.credentials import SOURCES, credential_source
from asynccommit.stores.registry import STORES

SECRET = "c2VjcmV0"


@pytest.mark.parametrize(
    "scheme, options, environ, source",
    [
        (
            "abfs",
            {"account_key": SECRET},
            {"AZURE_STORAGE_ANON": "1"},
            "option account_key",
        ),
        (
            "abfss",
            {"fs.azure.account.key.a.dfs.core.windows.net": SECRET},
            {},
            "option fs.azure.account.key.a.dfs.core.windows.net",
        ),
        (
            "abfs",
            {"account_host": "127.0.0.1:1"},
            {"AZURE_STORAGE_ACCOUNT_KEY": SECRET},
            "variable AZURE_STORAGE_ACCOUNT_KEY",
        ),
        (
            "gs",
            {},
            {"STORAGE_EMULATOR_HOST": "x"},
            "variable STORAGE_EMULATOR_HOST",
        ),
        ("s3", {"profile": "nightly"}, {"AWS_ACCESS_KEY_ID": SECRET}, "option profile"),
        ("s3a", {"spark.hadoop.fs.s3a.access.key": SECRET}, {}, "option fs.s3a.access.key"),
        ("hdfs", {}, {"KRB5CCNAME": "/tmp/krb5cc"}, "variable KRB5CCNAME"),
    ],
)
def test_place_is_named(
    scheme: str, options: dict[str, str], environ: dict[str, str], source: str
) -> None:
    """Options come before the environment; a name is shown, never a value."""
    found = credential_source(scheme, options, environ)

    assert found == source
    assert SECRET not in found


def test_files_come_after_the_environment(tmp_path: Path) -> None:
    """A file counts if it exists; then the machine is asked."""
    home = {"HOME": str(tmp_path)}
    assert "machine" in str(credential_source("s3a", {}, home))
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/credentials").write_text(SECRET)

    assert credential_source("s3a", {}, home) == "file ~/.aws/credentials"
    given = {**home, "AWS_ACCESS_KEY_ID": SECRET}
    assert credential_source("s3a", {}, given) == "variable AWS_ACCESS_KEY_ID"


def test_each_store_is_known() -> None:
    """Only local files need no credentials."""
    assert {scheme for scheme in STORES if scheme not in SOURCES} == {"file"}
    assert credential_source("file", {"key": SECRET}, {}) is None
