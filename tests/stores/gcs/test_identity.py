"""Who asks: what files, variables and the machine say."""

from __future__ import annotations

import json
import traceback
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from asynccommit.errors import OptionError, UnsupportedError
from asynccommit.stores.gcs import identity as gcs_identity
from asynccommit.stores.gcs.identity import GoogleAccount, Identity, Raw
from tests.support.google import authorized_user, pem, service_account

SCOPE = "https://www.googleapis.com/auth/devstorage.full_control"
CLOUD = "https://www.googleapis.com/auth/cloud-platform"
URL = "https://oauth2.googleapis.com/token"
ACT = "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/a@p:generateAccessToken"
USER = authorized_user(URL)
FEDERATED = {
    "type": "external_account",
    "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p",
    "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
    "token_url": "https://sts.googleapis.com/v1/token",
    "credential_source": {"file": "/var/run/token"},
}


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """This machine is none of Google's."""
    monkeypatch.setattr(gcs_identity, "_PRODUCT", str(tmp_path / "none"))


def of_text(text: str, **more: Any) -> Identity:
    """Return an identity of a text."""
    return Identity("text", SCOPE, text, **more)


def load(identity: Identity, **environ: str) -> GoogleAccount:
    """Find out who asks, which is an account."""
    found = identity.load({"HOME": "/nowhere", **environ})
    assert isinstance(found, GoogleAccount)
    return found


def of_data(data: dict[str, Any], **more: Any) -> GoogleAccount:
    """Return the account of the content of a file."""
    return load(Identity("data", SCOPE, data=data, **more))


def write(path: Path, data: object) -> str:
    """Write a file of credentials, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return str(path)


# --- where they are --------------------------------------------------------------------------


def test_the_variable_counts_first(tmp_path: Path) -> None:
    """Then what gcloud wrote, then the machine."""
    named = write(tmp_path / "named.json", {**USER, "client_id": "named"})
    write(tmp_path / ".config/gcloud/application_default_credentials.json", USER)
    other = write(
        tmp_path / "other/application_default_credentials.json", {**USER, "client_id": "o"}
    )
    home = {"HOME": str(tmp_path)}
    default = Identity("default", SCOPE)

    assert load(default, GOOGLE_APPLICATION_CREDENTIALS=named, **home).data["client_id"] == "named"
    assert load(default, **home).data["client_id"] == "client"
    moved = load(default, CLOUDSDK_CONFIG=str(Path(other).parent), **home)
    assert moved.data["client_id"] == "o"
    assert load(default).kind == "metadata"


def test_the_machine_may_be_asked_by_name() -> None:
    """Then files do not count."""
    found = load(Identity("machine", SCOPE), GOOGLE_APPLICATION_CREDENTIALS="/none.json")

    assert found.kind == "metadata"
    assert found.last_resort == ""
    assert found.token_url == (
        "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token"
    )


@pytest.mark.parametrize("name", ["GCE_METADATA_HOST", "GCE_METADATA_ROOT"])
def test_the_metadata_server_may_be_elsewhere(name: str) -> None:
    """As in Google's own libraries; whoever says so means that there is one."""
    found = load(Identity("default", SCOPE), **{name: "127.0.0.1:80"})

    assert found.token_url.startswith("http://127.0.0.1:80/computeMetadata/")
    assert found.last_resort == ""


def test_nothing_found_says_what_to_do() -> None:
    """In case the metadata server does not answer, or is not to be asked."""
    found = load(Identity("default", SCOPE))

    for what in ("gcloud auth", "GOOGLE_APPLICATION_CREDENTIALS", "option token", "token='anon'"):
        assert what in found.last_resort
    with pytest.raises(OptionError, match="no credentials: run gcloud auth"):
        load(Identity("default", SCOPE), NO_GCE_CHECK="true")


def test_a_machine_of_googles_has_a_metadata_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its firmware says so; then silence is a fault that may pass."""
    path = write(tmp_path / "product", "Google Compute Engine\n")
    monkeypatch.setattr(gcs_identity, "_PRODUCT", path)

    assert load(Identity("default", SCOPE)).last_resort == ""


def test_a_text_is_a_path_json_or_a_token(tmp_path: Path) -> None:
    """Whichever it can be."""
    path = write(tmp_path / "a file without ending", USER)

    assert load(of_text(path)).data == USER
    assert load(of_text(write(tmp_path / "x/key.json", USER))).where.endswith("x/key.json")
    assert load(of_text(json.dumps(USER))).data == USER
    assert of_text("ya29.a0/b~c-d_e+f==").load({}) == Raw("ya29.a0/b~c-d_e+f==")


@pytest.mark.parametrize("text", ["/no/key.json", "~/no.json", "./no", "key.json", "C:\\key"])
def test_a_path_to_nothing_is_no_token(text: str) -> None:
    """It would be sent to the service as one."""
    with pytest.raises(OptionError, match="but there is no such file"):
        of_text(text).load({})


@pytest.mark.parametrize("text", ["hunter2 hunter2", "hunter2\nhunter2", "hunter2é"])
def test_what_is_nothing_is_not_repeated(text: str) -> None:
    """It may be a secret all the same."""
    with pytest.raises(OptionError, match="neither a file, nor JSON, nor a bearer") as caught:
        of_text(text).load({})
    assert "hunter2" not in str(caught.value)


def test_a_missing_file_is_named_by_who_named_it(tmp_path: Path) -> None:
    """The variable, or the option."""
    with pytest.raises(OptionError, match=r"GOOGLE_APPLICATION_CREDENTIALS, /no.json: No such"):
        load(Identity("default", SCOPE), GOOGLE_APPLICATION_CREDENTIALS="/no.json")
    with pytest.raises(OptionError, match=r"fs\.gs\.x, /no.json: No such file"):
        load(Identity("file", SCOPE, "/no.json", where="fs.gs.x"))
    with pytest.raises(OptionError, match="Is a directory"):
        load(Identity("file", SCOPE, str(tmp_path)))


# --- what is in them -------------------------------------------------------------------------


def test_what_gcloud_aio_auth_reads_is_the_file() -> None:
    """Whole, as it was."""
    found = of_data(USER)

    assert json.loads(found.file().read()) == USER
    assert (found.kind, found.scope, found.principal) == ("authorized_user", SCOPE, "")


@pytest.mark.parametrize("kind", ["authorized_user", "service_account", "external_account"])
def test_a_type_may_be_missing(kind: str) -> None:
    """Old files have none."""
    whole = {
        "authorized_user": USER,
        "service_account": service_account(URL),
        "external_account": FEDERATED,
    }[kind]

    assert of_data({k: v for k, v in whole.items() if k != "type"}).kind == kind


def test_a_key_from_a_variable_has_its_line_ends_back() -> None:
    """Whoever put it into one has written them out."""
    data = service_account(URL, private_key=pem().replace("\n", "\\n"))

    assert of_data(data).data["private_key"] == pem()


def test_acting_as_somebody_asks_for_all() -> None:
    """The service that allows it takes no narrower tokens."""
    assert of_data(USER, principal="a@p").scope == CLOUD
    assert load(Identity("machine", SCOPE, principal="a@p")).scope == CLOUD
    found = of_data({**FEDERATED, "service_account_impersonation_url": ACT})
    assert found.scope == CLOUD


@pytest.mark.parametrize("source", [USER, service_account(URL), FEDERATED])
def test_an_impersonated_account_is_its_source_acting(source: dict[str, Any]) -> None:
    """Of whatever kind that is, and by whichever delegates."""
    found = of_data(
        {
            "type": "impersonated_service_account",
            "service_account_impersonation_url": ACT,
            "source_credentials": source,
            "delegates": ["b@p"],
        }
    )

    assert found.kind == source["type"]
    assert found.data["service_account_impersonation_url"] == ACT
    assert (found.scope, found.delegates) == (CLOUD, ("b@p",))


def test_another_token_server_may_be_said() -> None:
    """As Hadoop's key has it; a federated account has its own."""
    url = "https://tokens.example.com/"

    assert of_data(USER, token_url=url).token_url == url
    assert of_data(FEDERATED, token_url=url).token_url == ""


@pytest.mark.parametrize(
    "source, expected",
    [
        ({"file": "/t"}, {"file": "/t", "type": "url", "url": "file:/t"}),
        (
            {"file": "/t", "format": {"type": "json", "subject_token_field_name": "x"}},
            {
                "file": "/t",
                "format": {"type": "json", "subject_token_field_name": "x"},
                "type": "url",
                "url": "file:/t",
            },
        ),
        ({"url": "http://169.254.169.254/t"}, {"url": "http://169.254.169.254/t", "type": "url"}),
        ({"environment_id": "TOKEN"}, {"environment_id": "TOKEN", "type": "environment"}),
    ],
)
def test_a_subject_is_read_from_file_url_or_variable(
    source: dict[str, Any], expected: dict[str, Any]
) -> None:
    """In the form that the library takes; a file is read apart from the loop."""
    found = of_data({**FEDERATED, "credential_source": source})

    assert found.data["credential_source"] == expected


def changed(data: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return credentials with some of them changed."""
    return {**data, **more}


@pytest.mark.parametrize(
    "data, message",
    [
        ({}, "token are not credentials: the type is missing"),
        ({"installed": {"client_secret": "hunter2"}}, "the type is missing"),
        ({"type": "service_account"}, "lacks client_email and private_key"),
        ({"type": "authorized_user", "client_id": "c"}, "lacks client_secret and refresh_token"),
        (changed(USER, refresh_token=""), "lacks refresh_token"),
        (changed(USER, refresh_token=["hunter2"]), "refresh_token has the wrong type"),
        (changed(FEDERATED, credential_source="/t"), "credential_source has the wrong type"),
        (changed(FEDERATED, credential_source={"x": 1}), "names neither a file nor a url"),
        (changed(USER, token_uri="http://example.com/token"), "token_uri is not an https URL"),
        (changed(USER, token_uri="http://localhost@example.com/"), "token_uri is not an https URL"),
        (changed(USER, token_uri="http://[::1"), "token_uri is not an https URL"),
        (changed(FEDERATED, token_url="ftp://x"), "token_url is not an https URL"),
        (
            {
                "type": "impersonated_service_account",
                "service_account_impersonation_url": ACT,
                "source_credentials": {"type": "authorized_user"},
            },
            "lacks client_id",
        ),
    ],
)
def test_credentials_that_are_not_whole_are_refused_at_once(
    data: dict[str, Any], message: str
) -> None:
    """Before anybody is asked; the message names what is wrong, and no secret."""
    for check in (Identity("data", SCOPE, data=data).check, lambda: of_data(data)):
        with pytest.raises(OptionError, match=message) as caught:
            check()
        assert "hunter" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "data, message",
    [
        (
            {"type": "gdch_service_account"},
            "credentials of type 'gdch_service_account' are not supported",
        ),
        ({"type": "external_account_authorized_user"}, "credentials of type"),
        ({"type": "metadata"}, "credentials of type 'metadata' are not supported"),
        (
            changed(FEDERATED, credential_source={"environment_id": "aws1"}),
            "workload identity federation with AWS is not supported",
        ),
        (
            changed(FEDERATED, credential_source={"executable": {"command": "x"}}),
            "credential_source with executable is not supported",
        ),
        (
            changed(FEDERATED, credential_source={"certificate": {}}),
            "credential_source with certificate is not supported",
        ),
    ],
)
def test_what_the_library_cannot_do_says_what_can(data: dict[str, Any], message: str) -> None:
    """An object of google.auth knows all kinds."""
    with pytest.raises(UnsupportedError, match=f"{message}.*credentials object of google.auth"):
        Identity("data", SCOPE, data=data).check()


@pytest.mark.parametrize("content", ["", "[1]", "not JSON hunter2", '{"private_key": "hunter2'])
def test_a_file_that_is_no_json_is_named_and_not_repeated(tmp_path: Path, content: str) -> None:
    """It may be a key in another form."""
    path = write(tmp_path / "key.json", content)

    with pytest.raises(OptionError, match=r"key.json is not a JSON credentials file") as caught:
        load(of_text(path))
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("cut", ["whole", "half", "password"])
def test_a_private_key_that_cannot_be_read_is_not_repeated(cut: str) -> None:
    """The message says where it begins and ends."""
    key = {"whole": "hunter2", "half": pem()[: len(pem()) // 2], "password": _locked()}[cut]

    with pytest.raises(OptionError, match="private_key cannot be read: give all of it") as caught:
        of_data(service_account(URL, private_key=key))
    text = "".join(traceback.format_exception(caught.value))
    assert not any(line in text for line in key.splitlines() if "-----" not in line)


def _locked() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"hunter2"),
    ).decode()


def test_no_repr_shows_a_secret() -> None:
    """Of who asks, before and after files are read."""
    found = of_data(service_account(URL))
    shown = repr(found) + repr(of_text("ya29.secret")) + repr(Raw("ya29.secret"))
    shown += repr(Identity("data", SCOPE, data=USER)) + repr(of_data(USER))

    assert not any(secret in shown for secret in ("ya29", "hunter", pem()[100:200]))
    assert set(of_data(USER).secrets) == {"hunter2", "refresh-hunter3"}
    assert pem() in found.secrets
