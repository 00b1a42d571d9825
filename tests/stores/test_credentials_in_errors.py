"""No error of a store shows a credential, wherever what the service says is cut."""

from __future__ import annotations

import asyncio
import json
import time
import traceback
from base64 import b64encode
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from asynccommit.errors import StoreError
from asynccommit.stores.adls import errors
from asynccommit.stores.adls.credentials import Sas, SharedKey
from asynccommit.stores.adls.endpoint import AdlsEndpoint as AzurePlace
from asynccommit.stores.adls.tokens import AzureTokens
from asynccommit.stores.gcs import errors as gcs_errors
from asynccommit.stores.gcs.credentials import GcsTokens
from asynccommit.stores.gcs.endpoint import GcsEndpoint as GcsPlace
from asynccommit.stores.http.base import NotSentError, Response
from asynccommit.stores.http.tokens import Fresh, Holder, Renewal, TokenError
from asynccommit.stores.s3.credentials import Given, OfMachine
from asynccommit.stores.s3.errors import S3ErrorTranslator as S3Judge
from asynccommit.stores.s3.errors import S3Request
from asynccommit.stores.s3.sign import SigningKeys
from tests.support.s3_answers import answering, new_s3

SIGNATURE = "AbC+dEf/GhI+jKl/MnO0123456789+/xyzABCDEFGHI="
KEY = "a2V5IG9mIGFuIGFjY291bnQgdGhhdCBpcyBsb25nIGVub3VnaA=="
TOKEN = "eyJ0eXAiOiJKV1Qi.LCJhbGciOiJSUzI1NiIs.Ing1dCI6Ii1LST"
HOST = "acct.dfs.core.windows.net"
AZURE = AzurePlace("acct", "data", HOST, f"https://{HOST}", "")
SAS = f"sv=2024&se=2030&sig={quote(SIGNATURE, safe='')}"

WRITTEN: dict[str, Callable[[str], str]] = {
    "as it is": lambda secret: secret,
    "escaped": lambda secret: quote(secret, safe=""),
    "in lower case": lambda secret: (
        quote(secret, safe="").replace("%2B", "%2b").replace("%2F", "%2f").replace("%3D", "%3d")
    ),
    "twice": lambda secret: quote(quote(secret, safe=""), safe=""),
    "with spaces": lambda secret: secret.replace("+", " "),
    "cut by others": lambda secret: f"{secret[:20]}[cut]",
    "in base64": lambda secret: b64encode(secret.encode()).decode(),
}
PADS = [0, *range(250, 305, 9), *range(350, 405, 9)]


def shown(error: BaseException) -> str:
    """Return all that a user, a log or a report gets to see of an error."""
    return "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error))


def require_hidden(secret: str, text: str) -> None:
    """See that no six characters of a secret are in a text, nor of how it may be written."""
    for written in {write(secret) for write in WRITTEN.values()}:
        for at in range(len(written) - 5):
            part = written[at : at + 6]
            assert part not in text, (part, text)


@pytest.mark.sample(3)
@pytest.mark.parametrize("how", WRITTEN)
@pytest.mark.parametrize("status", [400, 403, 404, 409, 429, 500])
def test_adls(how: str, status: int) -> None:
    """A signature and an account key, in a message that is cut anywhere."""
    for secret, credential in ((SIGNATURE, Sas(SAS)), (KEY, SharedKey("acct", KEY, lambda: 0.0))):
        judge = errors.AdlsErrorTranslator(AZURE, credential, lambda: 0.0)
        for pad in PADS:
            text = "#" * pad + WRITTEN[how](secret)
            body = json.dumps({"error": {"code": "InvalidUri", "message": text}}).encode()
            headers = {"x-ms-request-id": "1-2"}
            for answer in (
                Response(status, headers, body),
                Response(status, {**headers, "x-ms-error-code": text}, body),
                Response(status, headers, f"<Code>A</Code><Message>{text}</Message>".encode()),
                NotSentError(f"GET {HOST}: {text}"),
            ):
                request = errors.AdlsRequest("put", "/p", writes=True)
                require_hidden(secret, shown(judge.translate(request, answer)))


@pytest.mark.rotate("status")
@pytest.mark.parametrize("how", WRITTEN)
@pytest.mark.parametrize("status", [400, 401, 403, 404, 412, 429, 500])
async def test_gcs(how: str, status: int) -> None:
    """A token, in a message that is cut anywhere."""

    class Source:
        """Gives one token."""

        secrets = ()
        holder = Holder("a test", "none")

        async def ask(self) -> Fresh:
            return Fresh(TOKEN, 1e12)

        def explain(self, error: Exception) -> TokenError:
            return TokenError(str(error), again=False)

        async def aclose(self) -> None:
            return None

    credential = GcsTokens(Source(), lambda: 0.0)
    await credential.renew()
    judge = gcs_errors.GcsErrorTranslator(
        GcsPlace("data", "https://storage.googleapis.com"), credential
    )
    for pad in PADS:
        text = "#" * pad + WRITTEN[how](TOKEN)
        for reason, message in (("invalid", text), (text, "No.")):
            error = {"message": message, "errors": [{"reason": reason}]}
            answer = Response(status, {}, json.dumps({"error": error}).encode())
            request = gcs_errors.GcsRequest("put", "/p", writes=True)
            require_hidden(TOKEN, shown(judge.translate(request, answer)))


@pytest.mark.sample(3)
@pytest.mark.parametrize("how", WRITTEN)
@pytest.mark.parametrize("status", [400, 403, 404, 503])
def test_s3(how: str, status: int) -> None:
    """A secret key and a session's token, in a message that is cut anywhere."""
    place = new_s3(answering())._client.place
    judge = S3Judge(place, Given(SigningKeys("AKIDEXAMPLE", KEY, SIGNATURE)))
    for secret in (KEY, SIGNATURE):
        for pad in PADS:
            text = "#" * pad + WRITTEN[how](secret)
            for code, message in (("InvalidRequest", text), (text, "No.")):
                body = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
                request = S3Request("put", "/p", writes=True)
                error: StoreError = judge.translate(request, Response(status, {}, body.encode()))
                require_hidden(secret, shown(error))


class Refusing:
    """A credential object whose library repeats what it was given."""

    def __init__(self, text: str) -> None:
        self.text = text

    async def get_token(self, scope: str) -> Any:
        """Refuse."""
        raise ValueError(self.text)


async def test_a_library_that_repeats_a_secret() -> None:
    """What a library of credentials says is redacted before it is cut, and never lost."""
    for pad in (0, 700, 770, 790, 990, 2000):
        text = "#" * pad + f" client_secret={KEY}"
        tokens = AzureTokens(Refusing(text), lambda: 0.0, secrets=(KEY,))
        with pytest.raises(TokenError) as refused:
            await tokens.renew()
        require_hidden(KEY, shown(refused.value))


async def test_a_machine_that_repeats_a_secret() -> None:
    """The same of botocore and all that it asks."""

    class Talking:
        """A machine that fails with the keys in its text."""

        text = ""

        def keys(self, *, anew: bool = False) -> SigningKeys:
            if self.text:
                raise OSError(self.text)
            return SigningKeys("AKIDEXAMPLE", KEY, SIGNATURE)

        def stale(self) -> bool:
            return True

    machine: Any = Talking()
    for pad in (0, 250, 280, 299):
        machine.text = ""
        credential = OfMachine(machine, time.monotonic)
        await credential.renew()
        machine.text = "#" * pad + KEY
        failure = await credential._fetch(anew=True)
        assert failure is not None
        require_hidden(KEY, shown(failure))


def test_no_repr_shows_a_secret() -> None:
    """What holds credentials does not show them when it is printed."""
    things: list[object] = [
        Fresh(TOKEN, 1.0),
        SigningKeys("AKIDEXAMPLE", KEY, TOKEN),
        Given(SigningKeys("AKIDEXAMPLE", KEY, TOKEN)),
        Sas(SAS),
        SharedKey("acct", KEY, lambda: 0.0),
    ]
    text = repr(things) + "".join(map(str, things))

    for secret in (TOKEN, KEY, SIGNATURE):
        require_hidden(secret, text)
    assert issubclass(GcsTokens, Renewal)
    assert asyncio.iscoroutinefunction(GcsTokens.renew)
