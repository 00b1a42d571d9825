"""Messages between a runner and its workers: what is sent is what is received."""

from __future__ import annotations

import pickle
from typing import Any

import orjson
import pytest

from asynccommit.commit.layouts.layout import Layout
from asynccommit.commit.orders import Order, Slice, Tally, WorkerLostError
from asynccommit.errors import (
    DeniedError,
    LeaseLostError,
    ManifestError,
    OptionError,
    UnsupportedError,
)
from asynccommit.runners import messages
from asynccommit.runners.desk import Parcel
from asynccommit.stores.urls import Address

ORDER = Order(
    Layout(Address("abfs", "data@x", "/t/p=50%25"), "job_1", 3, commit="c" * 64),
    "1.0",
    {"account_key": "secret"},
    {"workers": 3},
    4,
    "c" * 64,
    2,
    "plan-1",
    ("/elsewhere",),
    frozenset({"/t/a"}),
)


def sent(message: messages.Message) -> Any:
    """Return a message after its way."""
    data = messages.encode(message)
    assert data.count(b"\n") == 1
    return orjson.loads(data)


def test_round_trips() -> None:
    """An order, a slice and a tally arrive whole."""
    piece, tally = Slice(1, "sha256:0", 2), Tally(1, "w", 5, 4, 0.5, 3, ("x",))

    assert messages.order_of(sent(messages.order_message(ORDER))) == ORDER
    assert messages.slice_of(sent(messages.slice_message(piece))) == piece
    assert messages.tally_of(sent(messages.tally_message(tally))) == tally


@pytest.mark.parametrize(
    "error,kind",
    [
        (DeniedError("rename", "/x", "no"), DeniedError),
        (ManifestError("/x", "damaged"), ManifestError),
        (OptionError("bad"), UnsupportedError),
        (LeaseLostError("job", "slice", (), "late"), WorkerLostError),
        (KeyError("x"), WorkerLostError),
    ],
)
def test_an_error_arrives_with_its_text(error: Exception, kind: type[Exception]) -> None:
    """An unexpected error, or the end of its permit, counts as the loss of the worker."""
    there = messages.error_of(sent(messages.error_message(error)))

    assert type(there) is kind
    assert str(there).endswith(str(error)) or isinstance(error, KeyError | LeaseLostError)


def test_objects_are_refused() -> None:
    """JSON has no place for them, and nothing is pickled."""
    with pytest.raises(UnsupportedError, match="use text"):
        messages.encode({"storage": object()})


def test_an_order_shows_no_secret() -> None:
    """It may be logged or part of a traceback."""
    assert "secret" not in repr(ORDER)


def test_a_parcel_shows_no_secret() -> None:
    """Clusters log the arguments of tasks that fail."""
    parcel = Parcel(messages.encode({"order": messages.order_message(ORDER)}))

    assert b"secret" in parcel.order
    assert "secret" not in repr(pickle.loads(pickle.dumps(parcel)))
