"""Options under every name that users know them by, and which of several credentials counts."""

from __future__ import annotations

import traceback
from typing import Any, NamedTuple

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential

from asynccommit.errors import OptionError
from asynccommit.stores.adls.options import KNOWN, AzureSettings, read_settings
from asynccommit.stores.urls import parse_url

URL = "abfss://data@acct.dfs.core.windows.net/t"
KEY = "a2V5IG9mIGFuIGFjY291bnQ="
OTHER_KEY = "YW5vdGhlciBvbmU="
SAS = "sv=2024-11-04&sig=c2lnbmF0dXJl"
CONNECTION = f"AccountName=acct;AccountKey={KEY}"
APPLICATION = {"tenant_id": "tenant", "client_id": "client", "client_secret": "hunter2"}
ENV = "AZURE_STORAGE_"


class TokenSource:
    """A credential object that gives no token, because none is asked for here."""

    def get_token(self, *scopes: str) -> NamedTuple:
        """Give nothing."""
        raise NotImplementedError


def settings(
    options: dict[str, Any] | None = None,
    environ: dict[str, str] | None = None,
    url: str = URL,
) -> AzureSettings:
    """Read options and environment."""
    return read_settings(
        parse_url(url), options or {}, environ=environ or {}, now=lambda: 1_700_000_000.0
    )


def kind(options: dict[str, Any] | None = None, environ: dict[str, str] | None = None) -> str:
    """Return which credential counts, by what it would send."""
    credential = settings(options, environ).credential
    hidden = credential.hide(f"{KEY} {OTHER_KEY} c2lnbmF0dXJl hunter2")
    secret = {0: "key", 1: "other key", 2: "sas", 3: "application"}
    found = [name for place, name in secret.items() if _hidden(hidden, place)]
    return (
        found[0]
        if found
        else type(credential).__name__.lower().removeprefix("azure").removeprefix("adls")
    )


def _hidden(text: str, place: int) -> bool:
    return text.split()[place] == "***"


# --- which credential ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, expected",
    [
        ({"account_key": KEY}, "key"),
        ({"sas_token": SAS}, "sas"),
        ({"sas_token": f"?{SAS}"}, "sas"),
        ({"connection_string": CONNECTION}, "key"),
        ({"connection_string": f"AccountName=acct;SharedAccessSignature={SAS}"}, "sas"),
        ({"connection_string": f"{CONNECTION};SharedAccessSignature={SAS}"}, "key"),
        ({"connection_string": "AccountName=acct"}, "tokens"),
        (APPLICATION, "application"),
        ({"credential": KEY}, "key"),
        ({"credential": SAS}, "sas"),
        ({"credential": TokenSource()}, "tokens"),
        ({"credential": AzureSasCredential(SAS)}, "sas"),
        ({"credential": AzureNamedKeyCredential("acct", KEY)}, "key"),
        ({"anon": True}, "anonymous"),
        ({"anon": "1"}, "anonymous"),
        ({"anon": False}, "tokens"),
        ({"anon": False, "account_key": KEY}, "key"),
        ({"account_key": KEY, "sas_token": None, "anon": None, "client_secret": ""}, "key"),
        ({"client_id": "of a machine"}, "tokens"),
        ({"exclude_cli_credential": True}, "tokens"),
        ({}, "tokens"),
        ({"fs.azure.account.key": KEY}, "key"),
        ({"spark.hadoop.fs.azure.account.key.acct.dfs.core.windows.net": KEY}, "key"),
        ({"fs.azure.account.key.other.dfs.core.windows.net": KEY}, "tokens"),
        ({"fs.azure.sas.fixed.token.data.acct.dfs.core.windows.net": SAS}, "sas"),
        ({"fs.azure.account.key": OTHER_KEY, "account_key": KEY}, "key"),
        (
            {
                "fs.azure.account.auth.type": "OAuth",
                "fs.azure.account.oauth2.client.endpoint": "https://login/tenant/oauth2/token",
                "fs.azure.account.oauth2.client.id": "client",
                "fs.azure.account.oauth2.client.secret": "hunter2",
            },
            "application",
        ),
    ],
)
def test_an_option_chooses_the_credential(options: dict[str, Any], expected: str) -> None:
    """Every kind can be given; without any, it is what azure-identity finds."""
    assert kind(options) == expected


@pytest.mark.parametrize(
    "environ, expected",
    [
        ({f"{ENV}ACCOUNT_KEY": KEY}, "key"),
        ({f"{ENV}ACCOUNT_KEY": KEY, f"{ENV}ACCOUNT_NAME": "acct"}, "key"),
        ({f"{ENV}ACCOUNT_KEY": KEY, f"{ENV}ACCOUNT_NAME": "other"}, "tokens"),
        ({f"{ENV}ACCOUNT_KEY": KEY, f"{ENV}SAS_TOKEN": SAS}, "key"),
        ({f"{ENV}SAS_TOKEN": SAS}, "sas"),
        ({f"{ENV}CONNECTION_STRING": CONNECTION}, "key"),
        ({f"{ENV}CONNECTION_STRING": CONNECTION.replace("acct", "other")}, "tokens"),
        ({f"{ENV}{name.upper()}": value for name, value in APPLICATION.items()}, "application"),
        ({f"{ENV}ANON": "true"}, "anonymous"),
        ({f"{ENV}ANON": "0"}, "tokens"),
        ({f"{ENV}ACCOUNT_KEY": " "}, "tokens"),
        ({"ACCOUNT_KEY": KEY}, "tokens"),
    ],
)
def test_the_environment_chooses_if_no_option_does(environ: dict[str, str], expected: str) -> None:
    """What belongs to another account is passed over."""
    assert kind({}, environ) == expected


@pytest.mark.parametrize(
    "options, expected",
    [
        ({"sas_token": SAS}, "sas"),
        ({"anon": True}, "anonymous"),
        ({"fs.azure.sas.fixed.token": SAS}, "sas"),
        ({"account_name": "acct"}, "other key"),
    ],
)
def test_options_win_over_the_environment(options: dict[str, Any], expected: str) -> None:
    """Any credential that is given, whatever the environment has."""
    assert kind(options, {f"{ENV}ACCOUNT_KEY": OTHER_KEY}) == expected


def test_an_application_may_be_half_in_the_environment() -> None:
    """What options leave out, the environment completes, as adlfs does it."""
    environ = {f"{ENV}TENANT_ID": "tenant", f"{ENV}CLIENT_ID": "client"}

    assert kind({"client_secret": "hunter2"}, environ) == "application"


# --- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, message",
    [
        ({"account_key": KEY, "sas_token": SAS}, "account_key and sas_token are given"),
        ({"account_key": KEY, "anon": True}, "account_key and anon are given"),
        (
            {"connection_string": CONNECTION, "account_key": OTHER_KEY},
            "connection_string and account_key are given",
        ),
        ({"connection_string": CONNECTION, "account_name": "other"}, "names the account 'acct'"),
        ({"client_secret": "hunter2"}, "without tenant_id and client_id"),
        ({"client_secret": "hunter2", "client_id": "c"}, "without tenant_id"),
        ({"credential": 5}, "credential is a int"),
        ({"credential": {"key": KEY}}, "credential is a dict"),
        ({"account_key": f"{KEY}!"}, "not base64"),
        ({"account_key": f"{KEY}\u0430"}, "not base64"),
        ({"sas_token": "c2lnbmF0dXJl"}, "no sig="),
        ({"connection_string": f"AccountName acct;AccountKey={KEY}"}, "connection string is not"),
        ({"connection_string": f"AccountKey={KEY}"}, "neither AccountName"),
        ({"connection_string": f"AccountName=other;AccountKey={KEY}"}, "names the account"),
        ({"account_nam": "acct"}, "did you mean account_name"),
        ({"sas_tokn": SAS}, "did you mean sas_token"),
        ({"ACCOUNT_KEY": KEY}, "did you mean account_key"),
        ({"region": "west"}, "known options: account_host"),
        ({"timeout": "soon"}, "timeout is 'soon'"),
        ({"timeout": 0}, "timeout is 0"),
        ({"read_timeout": float("nan")}, "read_timeout is nan"),
        ({"connection_timeout": [1]}, "connection_timeout is "),
        ({"max_concurrency": 0}, "max_concurrency is 0"),
        ({"max_concurrency": "many"}, "max_concurrency is 'many'"),
        ({"anon": "perhaps"}, "anon is 'perhaps'"),
        ({"use_ssl": "perhaps", "account_key": KEY}, "use_ssl is 'perhaps'"),
        ({"use_ssl": False, **APPLICATION}, "tokens are not sent"),
        ({"use_ssl": False, "credential": TokenSource()}, "tokens are not sent"),
        ({"use_ssl": False}, "tokens are not sent"),
        ({"use_ssl": False, "sas_token": SAS}, "tokens are not sent"),
        ({"use_ssl": False, "credential": SAS}, "tokens are not sent"),
        ({"fs.azure.account.auth.type": "Custom"}, "give the option credential"),
        ({"fs.azure.account.hns.enabled": "perhaps", "anon": True}, "expected true or false"),
    ],
)
def test_a_wrong_option_is_named_and_no_secret(options: dict[str, Any], message: str) -> None:
    """The error is about the option, says what to do, and repeats no credential."""
    with pytest.raises(OptionError, match=message) as caught:
        settings(options)
    text = "".join(traceback.format_exception(caught.value, chain=True)) + repr(caught.value)
    for secret in (KEY, OTHER_KEY, "c2lnbmF0dXJl", "hunter2"):
        assert secret not in text.replace(f'"{secret}"', "")


def test_every_option_of_adlfs_is_known_or_passed_over() -> None:
    """Storage options that work with adlfs work here."""
    options = {
        "account_key": KEY,
        "blocksize": 1 << 20,
        "asynchronous": True,
        "loop": None,
        "default_fill_cache": False,
        "default_cache_type": "bytes",
        "version_aware": False,
        "assume_container_exists": True,
        "location_mode": "primary",
        "skip_instance_cache": True,
        "use_listings_cache": False,
        "listings_expiry_time": 1,
        "max_paths": 1,
        "request_session": None,
    }

    assert kind(options) == "key"


def test_keys_of_hadoop_that_are_about_other_things_are_passed_over() -> None:
    """A whole cluster configuration may be handed on."""
    options = {"fs.azure.io.rate.limit": "1000", "fs.azure.enable.flush": "true", "anon": True}

    assert kind(options) == "anonymous"


# --- what else is read -----------------------------------------------------------------------


def test_how_requests_are_sent_is_read() -> None:
    """Times, connections and the library that sends."""
    found = settings(
        {
            "account_key": KEY,
            "timeout": "30",
            "connection_timeout": 2,
            "read_timeout": 5.5,
            "max_concurrency": "300",
            "proxy": "http://proxy:3128",
            "ca_file": "/etc/ca.pem",
            "http_library": "aiohttp",
        }
    )

    http = found.http
    assert (http.total_timeout, http.connect_timeout, http.read_timeout) == (30.0, 2.0, 5.5)
    assert (http.connections, found.workers, found.library) == (300, 300, "aiohttp")
    assert (http.proxy, http.ca_file) == ("http://proxy:3128", "/etc/ca.pem")


def test_a_development_account_is_a_connection_string() -> None:
    """As Azure's own tools have it: the emulator on this machine, with the key all know."""
    found = settings({"connection_string": "UseDevelopmentStorage=true"}, url="az://data/t")

    assert found.place.account == "devstoreaccount1"
    assert found.place.origin == "http://127.0.0.1:10004"


def test_no_repr_shows_a_secret() -> None:
    """Settings may be logged."""
    options = {"account_key": KEY, "proxy": "http://me:hunter2@proxy"}

    assert KEY not in repr(settings(options))
    assert "hunter2" not in repr(settings(options))


def test_the_names_are_those_of_adlfs() -> None:
    """Its credential options are ours."""
    assert {
        *("account_name", "account_key", "connection_string", "sas_token", "credential"),
        *("tenant_id", "client_id", "client_secret", "anon", "account_host"),
        *("timeout", "connection_timeout", "read_timeout", "max_concurrency"),
    } <= KNOWN


def test_what_a_configuration_says_of_another_store_is_passed_over() -> None:
    """A session may write to several clouds: the keys of the others mean nothing here."""
    told = {"fs.gs.project.id": "p", "fs.s3a.access.key": "k", "account_key": KEY}
    address = parse_url("abfs://c@name.dfs.core.windows.net/")
    found = read_settings(address, told, environ={}, now=lambda: 0.0)
    assert found.place.container == "c"


def test_an_empty_proxy_is_no_proxy() -> None:
    """An empty ``proxy`` turns off that of the environment, as on every store."""
    assert settings({"account_key": KEY, "proxy": ""}).http.proxy == ""
    assert settings({"account_key": KEY}).http.proxy is None
