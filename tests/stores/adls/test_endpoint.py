"""Which account, which container, and where its requests go."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import OptionError
from asynccommit.stores.adls.endpoint import AdlsEndpoint, find_place, parse_connection_string
from asynccommit.stores.adls.hadoop import AbfsOptions
from asynccommit.stores.urls import parse_url

CLOUD = "acct.dfs.core.windows.net"
LOCAL = "http://127.0.0.1:10000/acct"


def place(
    url: str,
    options: dict[str, Any] | None = None,
    hadoop: dict[str, str] | None = None,
    around: dict[str, Any] | None = None,
) -> AdlsEndpoint:
    """Find the place of a URL."""
    return find_place(parse_url(url), options or {}, AbfsOptions(hadoop or {}), around or {})


@pytest.mark.parametrize(
    "url, options, hadoop, expected",
    [
        (f"abfss://data@{CLOUD}/t", {}, {}, f"https://{CLOUD}/data"),
        (f"abfs://data@{CLOUD}/t", {}, {}, f"https://{CLOUD}/data"),
        (f"abfs://data@{CLOUD.upper()}/t", {}, {}, f"https://{CLOUD}/data"),
        ("abfs://data@acct/t", {}, {}, f"https://{CLOUD}/data"),
        ("abfs://data/t", {"account_name": "acct"}, {}, f"https://{CLOUD}/data"),
        ("az://data/t", {"account_name": "acct"}, {}, f"https://{CLOUD}/data"),
        ("az://$web/t", {"account_name": "acct"}, {}, f"https://{CLOUD}/%24web"),
        (f"az://data@{CLOUD.replace('dfs', 'blob')}/t", {}, {}, f"https://{CLOUD}/data"),
        (
            "abfss://data@acct.dfs.core.chinacloudapi.cn/t",
            {},
            {},
            "https://acct.dfs.core.chinacloudapi.cn/data",
        ),
        (
            "abfss://data@acct.z01.dfs.storage.azure.net/t",
            {},
            {},
            "https://acct.z01.dfs.storage.azure.net/data",
        ),
        (
            "az://data/t",
            {"account_name": "acct", "_suffix": "core.usgovcloudapi.net"},
            {},
            "https://acct.dfs.core.usgovcloudapi.net/data",
        ),
        (
            "abfss://data@lake.example.com/t",
            {"account_name": "acct"},
            {},
            "https://lake.example.com/data",
        ),
        (
            "abfs://data@127.0.0.1:10000/t",
            {"account_name": "acct", "use_ssl": False},
            {},
            f"{LOCAL}/data",
        ),
        (
            "abfs://data@localhost:10000/t",
            {"account_name": "acct", "use_ssl": "false"},
            {},
            "http://localhost:10000/acct/data",
        ),
        (
            f"abfs://data@{CLOUD}/t",
            {"account_host": "127.0.0.1:10000", "use_ssl": False},
            {},
            f"{LOCAL}/data",
        ),
        (
            "az://data/t",
            {"account_name": "acct", "account_host": "acct.blob.core.windows.net"},
            {},
            f"https://{CLOUD}/data",
        ),
        (f"abfs://data@{CLOUD}/t", {"account_host": "http://[::1]:9"}, {}, "http://[::1]:9/acct/data"),
        (f"abfs://data@{CLOUD}/t", {"_dfs": f"{LOCAL}/"}, {}, f"{LOCAL}/data"),
        (f"abfs://data@{CLOUD}/t", {"_blob": LOCAL, "use_ssl": True}, {},
         "https://127.0.0.1:10000/acct/data"),
        (f"abfs://data@{CLOUD}/t", {"_protocol": "http"}, {}, f"http://{CLOUD}/data"),
        (
            f"abfs://data@{CLOUD}/t",
            {},
            {"fs.azure.abfs.endpoint": "127.0.0.1:10000", "fs.azure.always.use.https": "false"},
            f"{LOCAL}/data",
        ),
        (
            f"abfss://data@{CLOUD}/t",
            {},
            {"fs.azure.abfs.endpoint": "127.0.0.1:10000", "fs.azure.always.use.https": "false"},
            "https://127.0.0.1:10000/acct/data",
        ),
        (f"abfs://data@{CLOUD}/t", {}, {"fs.azure.abfs.endpoint": "elsewhere"},
         f"https://{CLOUD}/data"),
    ],
)  # fmt: skip
def test_requests_go_where_url_and_options_say(
    url: str, options: dict[str, Any], hadoop: dict[str, str], expected: str
) -> None:
    """Every form that users of fsspec, Hadoop and connection strings know leads to one URL."""
    found = place(url, options, hadoop)

    assert found.origin + found.prefix + found.source == expected
    assert found.account == "acct"


@pytest.mark.parametrize(
    "around, expected",
    [
        ({"account_name": "acct"}, f"https://{CLOUD}"),
        ({"account_name": "acct", "_dfs": LOCAL}, "http://127.0.0.1:10000"),
        ({"account_name": "acct", "_suffix": "example.net"}, "https://acct.dfs.example.net"),
    ],
)
def test_the_environment_names_the_account_if_nothing_else_does(
    around: dict[str, str], expected: str
) -> None:
    """And the endpoint that belongs to it."""
    assert place("az://data/t", around=around).origin == expected


def test_the_environment_of_another_account_is_passed_over() -> None:
    """Its endpoint is not for this one."""
    around = {"account_name": "other", "_dfs": LOCAL}

    assert place(f"abfs://data@{CLOUD}/t", around=around).origin == f"https://{CLOUD}"


@pytest.mark.parametrize(
    "url, options, message",
    [
        ("az://data/t", {}, "no storage account"),
        ("abfs://my_account@acct/t", {}, "no container"),
        (f"abfs://{CLOUD}/t", {}, "no container"),
        (f"abfs://@{CLOUD}/t", {}, "no container"),
        (f"abfs://Data@{CLOUD}/t", {}, "no container"),
        (f"abfs://da--ta@{CLOUD}/t", {}, "no container"),
        (f"abfs://-data@{CLOUD}/t", {}, "no container"),
        (f"abfs://{'d' * 64}@{CLOUD}/t", {}, "no container"),
        ("abfs://data@my_account.dfs.core.windows.net/t", {}, "'my_account' is not the name"),
        ("abfs://data@my-account.dfs.core.windows.net/t", {}, "'my-account' is not the name"),
        ("abfs://data@ab.dfs.core.windows.net/t", {}, "'ab' is not the name"),
        ("az://data/t", {"account_name": "My Account"}, "'My Account' is not the name"),
        ("az://data/t", {"account_name": "a" * 25}, "is not the name"),
        ("az://data/t", {"account_name": "a/../b"}, "is not the name"),
        (f"abfs://data@{CLOUD}/t", {"account_name": "other"}, "names the account 'acct'"),
        (f"abfs://data@{CLOUD}/t", {"account_host": "a b"}, "is not a host"),
        (f"abfs://data@{CLOUD}/t", {"account_host": "user:word@host"}, "is not a host"),
        (f"abfs://data@{CLOUD}/t", {"account_host": "ftp://host"}, "is not a host"),
        (f"abfs://data@{CLOUD}/t", {"account_host": "http://[::1"}, "is not a host"),
        (f"abfs://data@{CLOUD}/t", {"use_ssl": "maybe"}, "expected true or false"),
    ],
)
def test_what_names_no_place_is_refused(url: str, options: dict[str, Any], message: str) -> None:
    """Each mistake has its own message, and none repeats a password."""
    with pytest.raises(OptionError, match=message) as caught:
        place(url, options)
    assert "word" not in str(caught.value)


@pytest.mark.parametrize(
    "url, options, limit",
    [
        (f"abfs://data@{CLOUD}/t", {}, f"adls:{CLOUD}"),
        ("az://other/t", {"account_name": "acct"}, f"adls:{CLOUD}"),
        (f"abfs://data@{CLOUD}/t", {"_dfs": LOCAL}, "adls:127.0.0.1:10000/acct"),
    ],
)
def test_containers_of_an_account_share_a_limit(
    url: str, options: dict[str, Any], limit: str
) -> None:
    """Whatever container, and however the account was named."""
    assert place(url, options).limit == limit


@pytest.mark.parametrize(
    "endpoint, fine",
    [
        ("https://10.0.0.1:1", True),
        ("http://127.0.0.1:10000", True),
        ("http://localhost:1", True),
        ("http://[::1]:1", True),
        ("http://10.0.0.1:1", False),
        ("http://emulator:10000", False),
    ],
)
def test_tokens_cross_no_network_in_the_clear(endpoint: str, fine: bool) -> None:
    """This machine is no network."""
    found = place(f"abfs://data@{CLOUD}/t", {"account_host": endpoint})
    if fine:
        found.refuse_plain_tokens()
        return
    with pytest.raises(OptionError, match="use https"):
        found.refuse_plain_tokens()


# --- connection strings ----------------------------------------------------------------------


def test_a_connection_string_is_read() -> None:
    """As the portal shows it."""
    text = (
        "DefaultEndpointsProtocol=https;AccountName=acct;AccountKey=a2V5+/==;"
        "EndpointSuffix=core.windows.net"
    )

    assert parse_connection_string(text) == {
        "account_name": "acct",
        "account_key": "a2V5+/==",
        "_protocol": "https",
        "_suffix": "core.windows.net",
    }


@pytest.mark.parametrize(
    "text, account",
    [
        (
            "BlobEndpoint=https://acct.blob.core.windows.net/;SharedAccessSignature=sv=1&sig=x",
            "acct",
        ),
        ("DfsEndpoint=http://127.0.0.1:10000/acct;AccountKey=a2V5", "acct"),
        ("UseDevelopmentStorage=true", "devstoreaccount1"),
        (" usedevelopmentstorage = True ; ", "devstoreaccount1"),
        ("accountname = acct ; accountkey = a2V5 ;;", "acct"),
    ],
)
def test_the_account_is_found_in_any_part(text: str, account: str) -> None:
    """In the endpoint where it is not named, in any case and with spaces."""
    assert parse_connection_string(text)["account_name"] == account


@pytest.mark.parametrize(
    "text",
    ["secret", "AccountName=a;secret", "=secret", "Account Name=a;Key=secret", "AccountKey=secret",
     "BlobEndpoint=http://[secret;", "a;b;c=secret"],
)  # fmt: skip
def test_a_malformed_connection_string_is_refused_and_not_shown(text: str) -> None:
    """The error says what one looks like, and repeats nothing of it."""
    with pytest.raises(OptionError, match="connection string") as caught:
        parse_connection_string(text)
    assert "secret" not in repr(caught.value)


_values = st.text(
    st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=";"), min_size=1
)


@given(st.from_regex(r"[a-z0-9]{3,24}", fullmatch=True), _values)
def test_a_connection_string_keeps_its_values(account: str, key: str) -> None:
    """Whatever characters they have, equals signs among them."""
    found = parse_connection_string(f"AccountName={account};AccountKey={key}")

    assert (found["account_name"], found["account_key"]) == (account, key)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    """A connection string never fails in another way."""
    try:
        found = parse_connection_string(text)
    except OptionError:
        return
    assert found["account_name"]
