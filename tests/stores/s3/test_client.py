"""The door to the bucket: where it is found, who is let in, and what is sent along."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from asynccommit.errors import DeniedError, RejectedError, StoreError, UnavailableError
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.http.base import Response
from asynccommit.stores.http.tokens import TokenError
from asynccommit.stores.s3.credentials import OfMachine
from asynccommit.stores.s3.machine import AwsMachine
from asynccommit.stores.s3.sign import SigningKeys
from asynccommit.stores.s3.store import S3Store
from asynccommit.stores.urls import parse_url
from tests.support.gcs_store import Clock
from tests.support.s3_answers import Direct, Sent, answering, bare, error, found, new_s3

WRONG = [
    error("PermanentRedirect", 301, x_amz_bucket_region="eu-central-1"),
    bare(301, x_amz_bucket_region="eu-central-1"),
    error("AuthorizationHeaderMalformed", 400, more="<Region>eu-central-1</Region>"),
    error("TemporaryRedirect", 307, x_amz_bucket_region="eu-central-1"),
]


def hosts(direct: Direct) -> list[str]:
    """Return the region that each request was signed for."""
    return [sent.headers["authorization"].split("/")[2] for sent in direct.seen]


# --- regions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", WRONG)
async def test_a_bucket_elsewhere_is_asked_there_once_and_from_then_on(answer: Response) -> None:
    """The answer that names the region has done nothing: the request is sent again, there."""
    direct = answering(answer, found("e"))
    store = new_s3(direct)

    await store.put("/p", b"data")
    await store.put("/q", b"data")

    assert hosts(direct) == ["eu-west-1", "eu-central-1", "eu-central-1"]
    assert [sent.body for sent in direct.seen] == [b"data"] * 3


async def test_two_wrong_regions_end_in_an_error_that_names_one() -> None:
    """Whoever is sent in circles is told where the bucket is said to be."""
    direct = answering(WRONG[0], error("PermanentRedirect", 301, x_amz_bucket_region="us-west-2"))
    with pytest.raises(RejectedError, match="set region=us-west-2"):
        await new_s3(direct).put("/p", b"")

    assert len(direct.seen) == 2


@pytest.mark.parametrize("region", ["evil.example.com/", "a b", "", "x" * 60])
async def test_a_region_that_is_none_is_not_followed(region: str) -> None:
    """Credentials go to no host that an answer makes up."""
    direct = answering(error("PermanentRedirect", 301, more=f"<Region>{region}</Region>"))
    with pytest.raises(RejectedError):
        await new_s3(direct).put("/p", b"")

    assert len(direct.seen) == 1


async def test_another_server_is_not_left_for_a_region() -> None:
    """An endpoint that was named stays; only what is signed for follows the server's own word."""
    seen: list[str] = []
    direct = Direct()

    def answer(sent: Sent) -> Response:
        seen.append(sent.headers["authorization"].split("/")[2])
        return WRONG[2] if len(seen) == 1 else found("e")

    direct.before = answer
    await new_s3(direct, endpoint_url="http://127.0.0.1:1").put("/p", b"")
    assert seen == ["eu-west-1", "eu-central-1"]

    direct.before = lambda _: WRONG[0]
    with pytest.raises(RejectedError):
        await new_s3(direct, endpoint_url="http://127.0.0.1:1").put("/p", b"")


# --- what is sent along ----------------------------------------------------------------------


async def test_headers_of_a_request() -> None:
    """Who pays, checksum, encryption and class go along, and all of them are signed."""
    direct = answering(found("e"))
    store = new_s3(direct, requester_pays=True, encryption="SSE-KMS", storage_class="STANDARD_IA")
    await store.put("/p", b"123456789", overwrite=False, token="t")
    [sent] = direct.seen
    signed = sent.headers["authorization"].split("SignedHeaders=")[1].split(",")[0].split(";")

    assert {*sent.headers} - {"authorization"} == {*signed} - {"host"}
    assert sent.headers["x-amz-checksum-crc32"] == "y/Q5Jg=="
    assert sent.headers["x-amz-content-sha256"] == "UNSIGNED-PAYLOAD"
    assert sent.headers["x-amz-request-payer"] == "requester"
    assert sent.headers["x-amz-server-side-encryption"] == "aws:kms"
    assert sent.headers["x-amz-storage-class"] == "STANDARD_IA"
    assert sent.headers["if-none-match"] == "*"
    assert sent.headers["x-amz-meta-asynccommit-token"] == "t"


async def test_nobody_signs_for_the_anonymous() -> None:
    """Without a credential nothing is signed."""
    direct = answering(found("e"))
    await new_s3(direct, anon=True, key="", secret="").head("/p")

    assert "authorization" not in direct.seen[0].headers


# --- credentials -----------------------------------------------------------------------------


class Keyring(AwsMachine):
    """A machine with these keys, one after the other; an error among them is raised."""

    def __init__(self, *keys: SigningKeys | Exception) -> None:
        super().__init__()
        self.left = list(keys)
        self.threads: list[bool] = []
        self.anew: list[bool] = []
        self.is_stale = False

    def keys(self, *, anew: bool = False) -> SigningKeys:
        """Return the next ones, or the last ones again."""
        self.threads.append(threading.current_thread() is threading.main_thread())
        self.anew.append(anew)
        given = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        if isinstance(given, Exception):
            raise given
        return given

    def stale(self) -> bool:
        """Whether they should be renewed."""
        return self.is_stale


OLD, NEW = SigningKeys("OLD", "old-secret", "1st"), SigningKeys("NEW", "new-secret", "2nd")


def with_keys(
    monkeypatch: pytest.MonkeyPatch, direct: Direct, *keys: SigningKeys | Exception
) -> tuple[S3Store, Keyring]:
    """Return a store whose machine has these keys."""
    machine = Keyring(*keys)
    monkeypatch.setattr("asynccommit.stores.s3.options.AwsMachine", lambda _: machine)
    return new_s3(direct, key="", secret="", endpoint_url="http://127.0.0.1:1"), machine


def ids(direct: Direct) -> list[str]:
    """Return whose key signed each request."""
    return [sent.headers["authorization"].split("=")[1].split("/")[0] for sent in direct.seen]


async def test_keys_are_found_once_for_all_and_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many first requests wait for one search, which does not hold the loop up."""
    direct = answering(found("e"))
    store, machine = with_keys(monkeypatch, direct, OLD)
    await asyncio.gather(*(store.put(f"/{number}", b"") for number in range(10)))

    assert ids(direct) == ["OLD"] * 10
    assert machine.threads == [False]


@pytest.mark.parametrize(
    "failure,kind",
    [
        (TokenError("no credentials were found", again=False), DeniedError),
        (TimeoutError(), UnavailableError),
        (OSError("network"), UnavailableError),
    ],
)
async def test_no_keys(
    monkeypatch: pytest.MonkeyPatch, failure: Exception, kind: type[StoreError]
) -> None:
    """What does not pass is a refusal, what may is worth another attempt; nothing is sent."""
    direct = answering(found("e"))
    store, _ = with_keys(monkeypatch, direct, failure)
    with pytest.raises(kind):
        await store.put("/p", b"")

    assert direct.seen == []


async def test_ended_keys_are_looked_for_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that the service says has ended is replaced, and the request sent again later."""
    direct = Direct()
    direct.before = lambda sent: (
        error("ExpiredToken", 400) if "OLD" in sent.headers["authorization"] else found("e")
    )
    store, machine = with_keys(monkeypatch, direct, OLD, NEW)
    with pytest.raises(UnavailableError, match="has been renewed"):
        await store.put("/p", b"")
    await store.put("/p", b"")

    assert ids(direct) == ["OLD", "NEW"]
    assert machine.anew == [False, True]


async def test_ended_keys_that_nobody_replaces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are no others the error says what to do, and the search is not repeated."""
    direct = answering(error("ExpiredToken", 400))
    store, machine = with_keys(monkeypatch, direct, OLD)
    for _ in range(3):
        with pytest.raises(DeniedError, match="aws sso login") as caught:
            await store.put("/p", b"")

        assert "old-secret" not in str(caught.value)

    assert machine.anew == [False, True]


async def test_a_session_that_is_refused_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says that it was renewed in between, and of what kind it is."""
    direct = answering(error("ExpiredToken", 400))
    store, machine = with_keys(monkeypatch, direct, OLD, NEW)
    machine._credentials = SimpleNamespace(method="assume-role")
    with pytest.raises(UnavailableError, match="has been renewed"):
        await store.put("/p", b"")

    told = (
        r"the session of the assumed role was refused twice within \d+ s, although it was renewed"
    )
    with pytest.raises(DeniedError, match=told) as caught:
        await store.put("/p", b"")
    assert "new-secret" not in str(caught.value)


async def test_a_given_session_that_has_expired() -> None:
    """Nothing renews it: the error says where it was given."""
    direct = answering(error("ExpiredToken", 400))
    store = new_s3(direct, key="KEY", secret="s3cr3t-of-it", token="t0ken-of-it")
    with pytest.raises(DeniedError, match=r"given \(by options or AWS_SESSION_TOKEN\)") as caught:
        await store.put("/p", b"")
    assert "-of-it" not in str(caught.value)


async def test_keys_are_renewed_ahead_of_their_end() -> None:
    """They are looked at every half a minute, and renewed when that is due."""
    clock, machine = Clock(), Keyring(OLD, NEW)
    credential = OfMachine(machine, clock)
    await credential.renew()
    assert credential.renew_at - clock.now == pytest.approx(30, abs=0.1)

    await credential.renew()
    assert credential.keys == OLD

    machine.is_stale = True
    await credential.renew()
    assert credential.keys == NEW


async def test_a_renewal_that_fails_leaves_the_keys() -> None:
    """Whoever has keys goes on with them: it is for the service to say that they have ended."""
    machine = Keyring(OLD, OSError("network"))
    machine.is_stale = True
    credential = OfMachine(machine, Clock())
    await credential.renew()
    await credential.renew()

    assert credential.keys == OLD


# --- the machine -----------------------------------------------------------------------------

CONFIG = """
[default]
region = eu-west-3
[profile work]
region = eu-central-1
endpoint_url = http://127.0.0.1:7
[profile services]
services = mine
[services mine]
s3 =
  endpoint_url = https://s3.example.com
[profile wrong]
region = not/a region
"""
CREDENTIALS = """
[default]
aws_access_key_id = DEFAULT
aws_secret_access_key = hunter2
[work]
aws_access_key_id = WORK
aws_secret_access_key = hunter3
aws_session_token = session
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose profiles are in files."""
    (tmp_path / "config").write_text(CONFIG)
    (tmp_path / "credentials").write_text(CREDENTIALS)
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return tmp_path


Ask = Callable[..., tuple[str, str]]


async def asked(**options: Any) -> tuple[str, str]:
    """Return where the first request of a store goes, and who signs it."""
    direct, urls = answering(found("e")), list[str]()
    send = direct.send

    async def noting(method: str, url: str, *args: Any, **more: Any) -> Response:
        urls.append(url)
        return await send(method, url, *args, **more)

    direct.send = noting  # type: ignore[method-assign]
    store = S3Store(parse_url("s3://data/"), options, environ={}, transport=direct)
    await store.head("/p")
    await store.aclose()
    return urls[0], ids(direct)[0] if "authorization" in direct.seen[0].headers else ""


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    "options,expected",
    [
        ({}, ("https://data.s3.eu-west-3.amazonaws.com/p", "DEFAULT")),
        ({"profile": "work"}, ("http://127.0.0.1:7/data/p", "WORK")),
        ({"profile": "work", "region": "us-west-1"}, ("http://127.0.0.1:7/data/p", "WORK")),
        ({"anon": True}, ("https://data.s3.eu-west-3.amazonaws.com/p", "")),
        (
            {"key": "K", "secret": "s", "region": "us-west-1"},
            ("https://data.s3.us-west-1.amazonaws.com/p", "K"),
        ),
    ],
)
async def test_profiles(options: dict[str, Any], expected: tuple[str, str]) -> None:
    """Region, endpoint and keys come from the profile where nothing else says them."""
    assert await asked(**options) == expected


@pytest.mark.usefixtures("files")
async def test_little_is_known_of_a_server_that_a_profile_names() -> None:
    """That it is not AWS's own is known by the first request, and what the store says changes."""
    direct = answering(found("e"))
    store = new_s3(direct, key="", secret="", region="", profile="work")
    assert store.traits.conditional_delete
    await store.put("/p", b"")

    assert store.traits.multipart is not None
    assert not any((store.traits.conditional_delete, store.traits.conditions_proven))
    assert not any((store.traits.multipart.matches, store.traits.multipart.abort_tells))
    await store.delete_many([Info("/p", Kind.FILE, etag="e")])
    assert "if-match" not in direct.seen[-1].headers


@pytest.mark.usefixtures("files")
def test_an_endpoint_of_one_service_is_found() -> None:
    """A profile may name endpoints by service."""
    assert AwsMachine("services").config() == ("", "https://s3.example.com")
    assert AwsMachine().config() == ("eu-west-3", "")


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    "options,said",
    [
        ({"profile": "nobody"}, "ProfileNotFound"),
        ({"profile": "wrong"}, "not a valid name"),
        ({"profile": "services"}, "no credentials were found"),
    ],
)
async def test_profiles_that_are_of_no_use(options: dict[str, Any], said: str) -> None:
    """The first request says what is wrong with them."""
    with pytest.raises(DeniedError, match=said):
        await asked(**options)


@pytest.mark.usefixtures("files")
def test_what_is_shown_of_a_machine() -> None:
    """Neither machine nor keys show a secret."""
    machine = AwsMachine("work")

    assert machine.keys() == SigningKeys("WORK", "hunter3", "session")
    assert "hunter3" not in f"{machine!r} {machine.keys()!r} {OfMachine(machine, Clock())!r}"
    assert not machine.stale()


PROCESS = """
import datetime, json, pathlib, sys
counter = pathlib.Path(sys.argv[1])
number = int(counter.read_text()) + 1 if counter.exists() else 1
counter.write_text(str(number))
end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=5)
print(json.dumps({"Version": 1, "AccessKeyId": f"KEY{number}", "SecretAccessKey": "s",
                  "SessionToken": "t", "Expiration": end.isoformat()}))
"""


async def test_keys_that_end_soon_are_renewed(files: Path) -> None:
    """What a profile's process gives for five minutes is asked of it again, ahead of the end."""
    (files / "process.py").write_text(PROCESS)
    command = f"{sys.executable} {files / 'process.py'} {files / 'counter'}"
    (files / "config").write_text(f"[profile short]\ncredential_process = {command}\n")
    credential = OfMachine(AwsMachine("short"), Clock())
    await credential.renew()
    first = credential.keys
    await credential.renew()
    then = credential.keys

    assert first is not None
    assert then is not None
    assert first != then
    assert (first.token, then.token) == ("t", "t")


async def test_without_botocore_keys_can_still_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the search of the machine needs it, and says what to install."""
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    assert (await asked(key="K", secret="s"))[1] == "K"
    assert (await asked(anon=True))[0] == "https://data.s3.us-east-1.amazonaws.com/p"
    with pytest.raises(DeniedError, match=r"pip install 'asynccommit\[s3\]'"):
        await asked()
