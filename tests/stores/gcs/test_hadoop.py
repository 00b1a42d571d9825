"""Hadoop's options of Google Cloud Storage, as a cluster's configuration has them."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import OptionError
from asynccommit.options.job import OptionWarning
from asynccommit.stores.gcs.hadoop import GcsConnectorOptions
from asynccommit.stores.gcs.identity import Identity

GS = "fs.gs."
AUTH = f"{GS}auth.type"
FILE = f"{GS}auth.service.account.json.keyfile"
FEDERATED = f"{GS}auth.workload.identity.federation.credential.config.file"
ACT = f"{GS}auth.impersonation.service.account"
USER = {
    f"{GS}auth.client.id": "client",
    f"{GS}auth.client.secret": "hunter2",
    f"{GS}auth.refresh.token": "hunter3",
}
KEY = {
    f"{GS}auth.service.account.email": "sa@project.iam.gserviceaccount.com",
    f"{GS}auth.service.account.private.key.id": "id",
    f"{GS}auth.service.account.private.key": "hunter2",
}
OF_USER = {
    "type": "authorized_user",
    "client_id": "client",
    "client_secret": "hunter2",
    "refresh_token": "hunter3",
}
OF_KEY = {
    "type": "service_account",
    "client_email": "sa@project.iam.gserviceaccount.com",
    "private_key": "hunter2",
    "private_key_id": "id",
}
DEFAULT, MACHINE = Identity("default", "scope"), Identity("machine", "scope")


def file(path: str, key: str = FILE) -> Identity:
    """Return an identity in a file."""
    return Identity("file", "scope", path, where=key)


def identity(conf: dict[str, str]) -> Identity | str | None:
    """Read who asks, for the user ann."""
    return GcsConnectorOptions(conf).identity("scope", "ann")


# --- credentials -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "conf, expected",
    [
        ({}, None),
        ({f"{GS}project.id": "project"}, None),
        ({AUTH: "APPLICATION_DEFAULT"}, DEFAULT),
        ({AUTH: " application_default\n"}, DEFAULT),
        ({AUTH: "COMPUTE_ENGINE"}, MACHINE),
        ({AUTH: "COMPUTE_ENGINE", FILE: "/key.json"}, MACHINE),
        ({AUTH: "UNAUTHENTICATED", FILE: "/key.json"}, "anonymous"),
        ({AUTH: "SERVICE_ACCOUNT_JSON_KEYFILE", FILE: "/key.json"}, file("/key.json")),
        ({FILE: "/key.json"}, file("/key.json")),
        ({"google.cloud.auth.service.account.json.keyfile": "/all.json"}, file("/all.json")),
        (
            {"google.cloud.auth.service.account.json.keyfile": "/all.json", FILE: "/key.json"},
            file("/key.json"),
        ),
        ({"google.cloud.auth.type": "COMPUTE_ENGINE"}, MACHINE),
        ({f"{GS}auth.service.account.enable": "true", FILE: "/key.json"}, file("/key.json")),
        ({f"{GS}auth.service.account.enable": "true"}, None),
        ({f"{GS}auth.null.enable": "true"}, "anonymous"),
        ({f"{GS}auth.null.enable": "false", FILE: "/key.json"}, file("/key.json")),
        (
            {AUTH: "WORKLOAD_IDENTITY_FEDERATION_CREDENTIAL_CONFIG_FILE", FEDERATED: "/f.json"},
            file("/f.json", FEDERATED),
        ),
        ({FEDERATED: "/f.json"}, file("/f.json", FEDERATED)),
        ({AUTH: "USER_CREDENTIALS", **USER}, Identity("data", "scope", "", OF_USER, "fs.gs.auth")),
        (USER, Identity("data", "scope", "", OF_USER, "fs.gs.auth")),
        (KEY, Identity("data", "scope", "", OF_KEY, "fs.gs.auth")),
        (
            {**KEY, f"{GS}token.server.url": "https://tokens/"},
            Identity("data", "scope", "", OF_KEY, "fs.gs.auth", "", "https://tokens/"),
        ),
    ],
)
def test_the_credential_is_what_the_connector_would_take(
    conf: dict[str, str], expected: Identity | str | None
) -> None:
    """The type counts if it is said; if not, what is given tells it."""
    assert identity(conf) == expected


@pytest.mark.parametrize(
    "conf, principal",
    [
        ({ACT: "all@p"}, "all@p"),
        ({f"{ACT}.for.user.ann": "ann@p", ACT: "all@p"}, "ann@p"),
        ({f"{ACT}.for.user.bob": "bob@p", ACT: "all@p"}, "all@p"),
        ({f"{ACT}.for.user.ann": "ann@p", f"{ACT}.for.group.staff": "staff@p"}, "ann@p"),
        ({f"google.cloud.{ACT.removeprefix(GS)}": "all@p"}, "all@p"),
    ],
)
def test_whom_to_act_as_is_read(conf: dict[str, str], principal: str) -> None:
    """That of the user counts before that of all; the machine's own credential asks for it."""
    found = identity(conf)

    assert found == Identity("default", "scope", principal=principal)


def test_nobody_is_acted_as_for_another_user() -> None:
    """Then it is as if nothing were said."""
    assert identity({f"{ACT}.for.user.bob": "bob@p"}) is None


@pytest.mark.parametrize(
    "conf, message",
    [
        ({AUTH: "ACCESS_TOKEN_PROVIDER"}, "runs Hadoop's classes: give the option token"),
        ({f"{GS}auth.access.token.provider": "org.Mine"}, "give the option token"),
        ({f"{GS}auth.access.token.provider.impl": "org.Mine"}, "give the option token"),
        ({AUTH: "SERVICE_ACCOUNT_JSON_KEYFILE"}, "json.keyfile is missing"),
        ({AUTH: "WORKLOAD_IDENTITY_FEDERATION_CREDENTIAL_CONFIG_FILE"}, "config.file is missing"),
        ({AUTH: "USER_CREDENTIALS"}, "auth.client.id is missing"),
        ({**USER, f"{GS}auth.client.secret": " "}, "auth.client.secret is missing"),
        ({**KEY, f"{GS}auth.service.account.email": ""}, "auth.service.account.email is missing"),
        ({AUTH: "KERBEROS"}, "is 'KERBEROS': expected one of APPLICATION_DEFAULT"),
        ({f"{GS}auth.service.account.keyfile": "/key.p12"}, "create a JSON key"),
        ({f"{GS}auth.null.enable": "perhaps"}, "expected true or false"),
        ({f"{ACT}.for.group.staff": "staff@p"}, "needs Hadoop's groups"),
    ],
)
def test_what_only_hadoop_can_do_is_refused(conf: dict[str, str], message: str) -> None:
    """The message names the key and what to do instead, and no secret."""
    with pytest.raises(OptionError, match=message) as caught:
        identity(conf)
    assert "hunter" not in str(caught.value)


@pytest.mark.parametrize("conf", [USER, KEY, {ACT: "all@p"}])
def test_no_repr_shows_a_secret(conf: dict[str, str]) -> None:
    """Neither of the options nor of who asks."""
    assert "hunter" not in repr(GcsConnectorOptions(conf)) + repr(identity(conf))


# --- values ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("5s", 5.0),
        ("5000", 5.0),
        ("250ms", 0.25),
        ("2m", 120.0),
        ("1h", 3600.0),
        ("1 d", 86400.0),
        ("5S", 5.0),
        ("0", 86400.0),
        ("0s", 86400.0),
        ("", None),
    ],
)
def test_a_time_is_hadoops(text: str, seconds: float | None) -> None:
    """Milliseconds without a unit, and 0 is for ever."""
    assert (
        GcsConnectorOptions({f"{GS}http.read-timeout": text}).seconds("http.read-timeout")
        == seconds
    )


@pytest.mark.parametrize(
    "text, size",
    [("8388608", 1 << 23), ("24m", 24 << 20), ("512M", 512 << 20), ("1gb", 1 << 30), ("", None)],
)
def test_a_size_is_hadoops(text: str, size: int | None) -> None:
    """Bytes, or multiples of 1,024."""
    assert GcsConnectorOptions({f"{GS}rewrite.max.chunk.size": text}).size(
        "rewrite.max.chunk.size"
    ) == (size)


@pytest.mark.parametrize("text", ["soon", "-1s", "5 weeks", "1.5s", "\u0665s"])
def test_what_is_no_time_is_named(text: str) -> None:
    """With its key."""
    with pytest.raises(
        OptionError, match=r"fs\.gs\.http\.read-timeout is .*: expected a duration such as 5s"
    ):
        GcsConnectorOptions({f"{GS}http.read-timeout": text}).seconds("http.read-timeout")


@pytest.mark.parametrize("text", ["much", "-1", "0", "1.5m", "5x"])
def test_what_is_no_size_is_named(text: str) -> None:
    """With its key."""
    with pytest.raises(OptionError, match=r"fs\.gs\.x is .*: expected bytes"):
        GcsConnectorOptions({f"{GS}x": text}).size("x")


@pytest.mark.parametrize("text", ["many", "-1", "0", "1.5", "\u0665"])
def test_what_is_no_count_is_named(text: str) -> None:
    """With its key."""
    with pytest.raises(OptionError, match=r"fs\.gs\.x is .*: expected a whole number"):
        GcsConnectorOptions({f"{GS}x": text}).count("x")


@given(st.integers(1, 10**9))
def test_a_count_is_read(value: int) -> None:
    """Any that is at least 1."""
    assert GcsConnectorOptions({f"{GS}x": f" {value} "}).count("x") == value


@pytest.mark.parametrize(
    "conf, proxy",
    [
        ({}, None),
        ({"proxy.address": "proxy:3128"}, "http://proxy:3128"),
        ({"proxy.address": "http://proxy:3128/"}, "http://proxy:3128"),
        (
            {"proxy.address": "proxy:3128", "proxy.username": "me", "proxy.password": "a@b:c"},
            "http://me:a%40b%3Ac@proxy:3128",
        ),
    ],
)
def test_a_proxy_is_read(conf: dict[str, str], proxy: str | None) -> None:
    """User and password are put into its URL, encoded."""
    assert GcsConnectorOptions({GS + name: value for name, value in conf.items()}).proxy() == proxy


@pytest.mark.parametrize("address", ["proxy", "socks://proxy:1", "me:hunter2@proxy:3128"])
def test_what_is_no_proxy_is_refused(address: str) -> None:
    """No password is repeated."""
    with pytest.raises(OptionError, match=r"proxy.address is not HOST:PORT") as caught:
        GcsConnectorOptions({f"{GS}proxy.address": address}).proxy()
    assert "hunter" not in str(caught.value)


@pytest.mark.parametrize(
    "mode, pays",
    [
        ({}, False),
        ({"mode": "DISABLED"}, False),
        ({"mode": "ENABLED"}, True),
        ({"mode": "enabled", "project.id": "payer"}, "payer"),
        ({"mode": "CUSTOM", "buckets": "other, data", "project.id": "payer"}, "payer"),
        ({"mode": "CUSTOM", "buckets": "other", "project.id": "payer"}, False),
        ({"mode": "CUSTOM"}, False),
    ],
)
def test_who_pays_is_read(mode: dict[str, str], pays: str | bool) -> None:
    """By bucket, if that is said."""
    conf = {f"{GS}requester.pays.{name}": value for name, value in mode.items()}

    assert GcsConnectorOptions(conf).payer("data") == pays


def test_nobody_is_charged_for_a_guess() -> None:
    """Whether the bucket needs it is not found out here."""
    with pytest.warns(OptionWarning, match="AUTO is not supported, and no project is charged"):
        assert GcsConnectorOptions({f"{GS}requester.pays.mode": "AUTO"}).payer("data") is False


def test_an_unknown_mode_of_payment_is_refused() -> None:
    """The message says which there are."""
    with pytest.raises(OptionError, match="expected DISABLED, ENABLED or CUSTOM"):
        GcsConnectorOptions({f"{GS}requester.pays.mode": "LATER"}).payer("data")


def test_headers_are_read() -> None:
    """Each is one key."""
    conf = {f"{GS}storage.http.headers.X-Custom": "value", f"{GS}storage.root.url": "https://h"}

    assert GcsConnectorOptions(conf).headers() == {"X-Custom": "value"}


# --- names -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key, hint",
    [
        (f"{GS}auth.service.account.json.keyfle", "did you mean fs.gs.auth.service.account.json"),
        ("google.cloud.auth.typ", "did you mean fs.gs.auth.type"),
        (f"{GS}encryption.keys", "did you mean fs.gs.encryption.key"),
        (f"{GS}requester.pays.bucket", "did you mean fs.gs.requester.pays.buckets"),
        (f"{GS}auth.something.else.altogether", "has no effect here"),
    ],
)
def test_a_wrong_name_about_credentials_warns(key: str, hint: str) -> None:
    """Otherwise the job would go on as somebody else."""
    with pytest.warns(OptionWarning, match=hint):
        GcsConnectorOptions({key: "x"})


def test_keys_about_other_things_are_passed_over() -> None:
    """A whole cluster configuration may be handed on."""
    conf = {
        f"{GS}impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
        f"{GS}inputstream.fadvise": "AUTO",
        f"{GS}http.max.retry": "10",
        f"{GS}batch.threads": "15",
        "google.cloud.auth.service.account.enable": "true",
        f"{ACT}.for.user.bob": "bob@p",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert identity(conf) is None
