"""Claims, stops and the decision: round trips, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import ManifestError
from asynccommit.formats.commit_owner import (
    MAX_EPOCH,
    Claim,
    Decision,
    Outcome,
    OwnerStop,
    decode_claim,
    decode_decision,
    decode_stop,
    encode_beat,
    encode_claim,
    encode_decision,
    encode_stop,
)
from asynccommit.formats.commit_record import Owner
from asynccommit.formats.fields import MAX_LONG, MAX_TIME

PATH = "/t/commit-file.json"
DECODERS: dict[str, Callable[[bytes, str], object]] = {
    "claim": decode_claim,
    "stop": decode_stop,
    "decision": decode_decision,
}
FILES: dict[str, dict[str, Any]] = {
    "claim": orjson.loads(encode_claim(Claim(2, Owner("o", "h", "u", "p"), 60.0, 5, "expired"))),
    "stop": orjson.loads(encode_stop(OwnerStop(1, "o", 5, "job_stage_rename_files", "no", 3))),
    "decision": orjson.loads(encode_decision(Decision(Outcome.COMMITTED, 1, "o", 5, "c"))),
}
TYPES = {key: value for kind in FILES.values() for key, value in kind.items()}

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=10)
some = texts.filter(bool)
epochs = st.integers(1, MAX_EPOCH)
times = st.integers(0, MAX_TIME)
owners = st.builds(Owner, some, some, some, texts)


def refused(kind: str, value: Any) -> str:
    """Return the reason why a file of that kind with this content is refused."""
    with pytest.raises(ManifestError) as caught:
        DECODERS[kind](orjson.dumps(value), PATH)
    assert caught.value.path == PATH
    return caught.value.reason


@given(st.builds(Claim, epochs, owners, st.floats(0.001, 1e6), times, texts))
def test_claims_round_trip(claim: Claim) -> None:
    """A claim reads back as it was written."""
    assert decode_claim(encode_claim(claim), PATH) == claim


@given(st.builds(OwnerStop, epochs, some, times, texts, texts, st.integers(0, MAX_LONG)))
def test_stops_round_trip(stop: OwnerStop) -> None:
    """A stop reads back as it was written."""
    assert decode_stop(encode_stop(stop), PATH) == stop


@given(st.builds(Decision, st.sampled_from(Outcome), epochs, some, times, some))
def test_decisions_round_trip(decision: Decision) -> None:
    """The decision reads back as it was written."""
    assert decode_decision(encode_decision(decision), PATH) == decision


@given(st.text(max_size=20))
def test_a_stop_can_be_written_whatever_went_wrong(error: str) -> None:
    """Names of files in an error are written for people, so that nothing keeps the note back."""
    stop = decode_stop(encode_stop(OwnerStop(1, "o", 5, error, error)), PATH)

    if error.isprintable():
        assert (stop.stage, stop.error) == (error, error)


def test_texts_for_people_are_cut() -> None:
    """An endless error, or one with half characters, takes no endless file."""
    stop = decode_stop(encode_stop(OwnerStop(1, "o", 5, "s", "\0\udce9" + "x" * 1_000_000)), PATH)

    assert stop.error.startswith("\\0\\udce9x")
    assert len(stop.error) < 11_000


def test_a_sign_of_life_says_whose_it_is() -> None:
    """The file is read by people, the time by the store."""
    assert orjson.loads(encode_beat(3, "owner-1", 17)) == {
        "type": "asynccommit.CommitAlive/1",
        "epoch": 3,
        "owner": "owner-1",
        "beat": 17,
    }


@pytest.mark.rotate("value", keep=2)
@pytest.mark.parametrize("kind,key", [(kind, key) for kind in FILES for key in FILES[kind]])
@pytest.mark.parametrize("value", [..., None, 1.5, [], {}, True, "a\0b", -1])
def test_a_damaged_field_is_named(kind: str, key: str, value: Any) -> None:
    """A field that is missing, of another type or out of range is refused by its name."""
    if (key, value) == ("lease", 1.5):
        return
    changed = FILES[kind] | {key: value}
    if value is ...:
        del changed[key]

    assert refused(kind, changed).startswith((f"{key} ", f"{key}."))


@pytest.mark.parametrize(
    "kind,key,value,reason",
    [
        ("claim", "type", TYPES["type"], "type is "),
        ("claim", "epoch", 0, "epoch is less than 1"),
        ("claim", "epoch", MAX_EPOCH + 1, f"epoch is more than {MAX_EPOCH}"),
        ("claim", "lease", 0, "lease is not a duration"),
        ("stop", "stopped", MAX_TIME + 1, f"stopped is more than {MAX_TIME}"),
        ("stop", "owner", "", "owner is empty"),
        ("decision", "outcome", "maybe", "outcome is the string 'maybe', not committed or roll"),
        ("decision", "commit", "", "commit is empty"),
    ],
)
def test_what_cannot_be_true_is_refused(kind: str, key: str, value: Any, reason: str) -> None:
    """Another kind of file, numbers out of range and words that nobody knows are refused."""
    assert refused(kind, FILES[kind] | {key: value}).startswith(reason)


@pytest.mark.parametrize("kind", DECODERS)
@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff", b'{"type": "\\ud800"}'])
def test_what_is_no_such_file_is_refused(kind: str, data: bytes) -> None:
    """Content that is cut or no JSON is refused as such."""
    with pytest.raises(ManifestError, match=PATH):
        DECODERS[kind](data, PATH)


def test_what_could_not_be_read_is_not_written() -> None:
    """An owner without an id, or an epoch that no file name can hold, is not claimed."""
    owner = Owner("o", "h", "u")
    for claim in (Claim(MAX_EPOCH + 1, owner, 1.0, 1), Claim(1, Owner("", "h", "u"), 1.0, 1)):
        with pytest.raises(ManifestError):
            encode_claim(claim)
    with pytest.raises(ManifestError):
        encode_decision(Decision(Outcome.ROLLBACK, 1, "o", 1, ""))
