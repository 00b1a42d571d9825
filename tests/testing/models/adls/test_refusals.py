"""Every code that the model answers no with is provoked by a test, and has the service's words."""

from __future__ import annotations

import re
from pathlib import Path

from asynccommit.testing.models import adls
from asynccommit.testing.models.adls.refusals import BUSY, CODES, Refusal, refusal

HERE = Path(__file__).parent
PACKAGE = Path(adls.__file__).parent


def test_every_code_in_use_is_provoked() -> None:
    """No refusal in the model's source lacks a test that names its code."""
    source = "".join(path.read_text("utf-8") for path in PACKAGE.glob("*.py"))
    used = set(re.findall(r'(?:refusal\(|failed: str = |Refusal\(\d+, )"(\w+)"', source))
    tests = "".join(path.read_text("utf-8") for path in HERE.glob("test_*.py"))
    tested = set(re.findall(r'"([A-Z]\w+)"', tests))

    assert len(used) > 35
    assert used - tested == set()
    assert used - CODES.keys() == set()


def test_status_belongs_to_the_code() -> None:
    """The statuses are those of the service's table of errors."""
    by_status: dict[int, int] = {}
    for status, words in CODES.values():
        by_status[status] = by_status.get(status, 0) + 1
        assert words.endswith(".")
        assert "  " not in words

    assert by_status.keys() == {400, 401, 403, 404, 405, 409, 412, 413, 416, 500, 503}
    assert CODES["ServerBusy"] == (503, "Operations per second is over the account limit.")
    assert CODES["LeaseIdMissing"][0] == 412
    assert CODES["LeaseNotPresentWithLeaseOperation"][0] == 409


def test_busy_has_four_messages() -> None:
    """Hadoop's client tells ingress, egress and operations apart by them."""
    assert len(set(BUSY)) == 4
    assert BUSY[0] == CODES["ServerBusy"][1]


def test_refusal_says_what_it_is() -> None:
    """A code alone brings status and words; both can be given, and so can headers."""
    no = refusal("PathNotFound")
    assert (no.status, no.code, str(no)) == (
        404,
        "PathNotFound",
        "404 PathNotFound: The specified path does not exist.",
    )
    assert dict(no.headers) == {}

    busy = refusal("ServerBusy", BUSY[1], {"Retry-After": "3"})

    assert (busy.message, busy.headers["Retry-After"]) == (BUSY[1], "3")
    assert refusal("Unheard").status == 500
    assert Refusal(418, "Teapot").message == ""
