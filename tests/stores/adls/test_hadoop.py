"""Hadoop's options of ABFS, as a cluster's configuration has them."""

from __future__ import annotations

import pytest

from asynccommit.errors import OptionError
from asynccommit.stores.adls.hadoop import AbfsOptions, Found
from asynccommit.stores.adls.identity import Application, AzureMachine

HOST = "acct.dfs.core.windows.net"
KEY = "fs.azure.account.key"
SAS = "fs.azure.sas.fixed.token"
AUTH = "fs.azure.account.auth.type"
OAUTH = "fs.azure.account.oauth2."
PROVIDER = "fs.azure.account.oauth.provider.type"
PACKAGE = "org.apache.hadoop.fs.azurebfs.oauth2."
CLIENT = {
    f"{OAUTH}client.endpoint": "https://login.microsoftonline.com/tenant/oauth2/token",
    f"{OAUTH}client.id": "client",
    f"{OAUTH}client.secret": "secret",
}
APPLICATION = Application("tenant", "client", "secret", "login.microsoftonline.com")


@pytest.mark.parametrize(
    "conf, expected",
    [
        ({}, None),
        ({"fs.azure.io.rate.limit": "1000"}, None),
        ({KEY: "k"}, ("key", "k")),
        ({f"{KEY}.{HOST}": "mine", KEY: "any"}, ("key", "mine")),
        ({f"{KEY}.other.dfs.core.windows.net": "other"}, None),
        ({f"{KEY}.{HOST}": " k \n"}, ("key", "k")),
        ({SAS: "s"}, ("sas", "s")),
        ({f"{SAS}.data.{HOST}": "data", f"{SAS}.{HOST}": "all"}, ("sas", "data")),
        ({f"{SAS}.else.{HOST}": "else", f"{SAS}.{HOST}": "all"}, ("sas", "all")),
        ({KEY: "k", SAS: "s"}, ("key", "k")),
        ({KEY: "k", SAS: "s", AUTH: "SAS"}, ("sas", "s")),
        ({KEY: "k", SAS: "s", f"{AUTH}.{HOST}": "SAS", AUTH: "SharedKey"}, ("sas", "s")),
        ({KEY: "k", AUTH: "OAuth", **CLIENT}, ("application", APPLICATION)),
        (
            {AUTH: "OAuth", PROVIDER: f"{PACKAGE}ClientCredsTokenProvider", **CLIENT},
            ("application", APPLICATION),
        ),
        (
            {AUTH: "OAuth", PROVIDER: f"{PACKAGE}MsiTokenProvider"},
            ("machine", AzureMachine("ManagedIdentityCredential", {})),
        ),
        (
            {AUTH: "OAuth", PROVIDER: f"{PACKAGE}MsiTokenProvider", f"{OAUTH}client.id": "c"},
            ("machine", AzureMachine("ManagedIdentityCredential", {"client_id": "c"})),
        ),
        (
            {
                AUTH: "OAuth",
                PROVIDER: f"{PACKAGE}WorkloadIdentityTokenProvider",
                f"{OAUTH}client.id": "c",
                f"{OAUTH}msi.tenant": "t",
                f"{OAUTH}token.file": "/f",
            },
            (
                "machine",
                AzureMachine(
                    "WorkloadIdentityCredential",
                    {"client_id": "c", "tenant_id": "t", "token_file_path": "/f"},
                ),
            ),
        ),
    ],
)
def test_the_credential_is_what_hadoop_would_take(
    conf: dict[str, str], expected: Found | None
) -> None:
    """The closest key counts, and the type of authentication chooses among several."""
    assert AbfsOptions(conf).credential(HOST, "data") == expected


@pytest.mark.parametrize(
    "conf, message",
    [
        ({AUTH: "SharedKey"}, "fs.azure.account.key is missing"),
        ({AUTH: "SAS"}, "fs.azure.sas.fixed.token is missing"),
        ({AUTH: "OAuth", **{**CLIENT, f"{OAUTH}client.secret": ""}}, "client.secret is missing"),
        ({AUTH: "OAuth", **CLIENT, f"{OAUTH}client.endpoint": "tenant"}, "names no tenant"),
        ({AUTH: "OAuth", **CLIENT, f"{OAUTH}client.endpoint": "https://host/"}, "names no tenant"),
        ({AUTH: "Custom"}, "give the option credential"),
        ({AUTH: "UserboundSASWithOAuth"}, "give the option credential"),
        ({AUTH: "OAuth", PROVIDER: f"{PACKAGE}UserPasswordTokenProvider"}, "give the option"),
        ({AUTH: "sharedkey", KEY: "secret"}, "expected SharedKey, SAS or OAuth"),
    ],
)
def test_what_only_hadoop_can_do_is_refused(conf: dict[str, str], message: str) -> None:
    """The message names the key and what to do instead, and no secret."""
    with pytest.raises(OptionError, match=message) as caught:
        AbfsOptions(conf).credential(HOST, "data")
    assert "secret," not in str(caught.value)


@pytest.mark.parametrize(
    "conf, expected",
    [
        ({}, None),
        ({"fs.azure.account.hns.enabled": "true"}, True),
        ({f"fs.azure.account.hns.enabled.{HOST}": "False"}, False),
    ],
)
def test_the_namespace_may_be_said(conf: dict[str, str], expected: bool | None) -> None:
    """Then the service is not asked."""
    assert AbfsOptions(conf).hierarchical(HOST) is expected


def test_a_flag_that_is_none_is_refused() -> None:
    """The message names the key."""
    with pytest.raises(OptionError, match=r"hns\.enabled is 'yes': expected true or false"):
        AbfsOptions({"fs.azure.account.hns.enabled": "yes"}).hierarchical(HOST)
