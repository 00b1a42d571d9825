"""A program opens a store by its URL, and leaves it closed."""

from __future__ import annotations

from pathlib import Path

import pytest

from asynccommit import OptionError, UnsupportedError, UrlError, open_store
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.policies.rate import Throttle
from asynccommit.stores.policies.retry import Retry


async def test_store_is_opened_by_text_path_and_address(tmp_path: Path) -> None:
    """The text of a URL, a path object and an address open the same store."""
    (tmp_path / "f").write_bytes(b"four")
    for place in (f"file:{tmp_path}", str(tmp_path), tmp_path):
        async with open_store(place) as store:
            assert await store.get(f"{tmp_path}/f", 9) == b"four"


async def test_store_is_closed_on_leaving(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The store is closed when the block is left, after an error as well."""
    closed: list[bool] = []

    async def close(store: LocalStore) -> None:
        closed.append(True)

    monkeypatch.setattr(LocalStore, "aclose", close)

    async with open_store(tmp_path):
        pass
    with pytest.raises(ZeroDivisionError):
        async with open_store(tmp_path):
            raise ZeroDivisionError

    assert closed == [True, True]


async def test_requests_are_retried_and_limited(tmp_path: Path) -> None:
    """The policies of a commit are around the store that a program opens."""
    async with open_store(tmp_path, rate=100, attempts=3) as store:
        assert isinstance(store, Wrapped)
        kinds = {type(policy) for policy in store.policies}

    assert {Retry, Throttle} <= kinds


@pytest.mark.parametrize(
    "url, options, kind",
    [
        ("", {}, UrlError),
        (7, {}, UrlError),
        ("ofs://data/t", {}, UnsupportedError),
        ("/t", {"rate": -1}, OptionError),
        ("/t", {"attempts": 0}, OptionError),
        ("/t", {"storage_options": {"fs.azure.io.rate.limit": "x"}}, OptionError),
    ],
)
async def test_wrong_argument_is_refused(
    url: str, options: dict[str, float], kind: type[Exception]
) -> None:
    """An argument that cannot be read is an error of its kind, before anything is asked."""
    with pytest.raises(kind):
        async with open_store(url, **options):  # type: ignore[arg-type]
            pass


async def test_wrong_option_shows_no_secret() -> None:
    """The error about storage options that are no mapping shows nothing of them."""
    with pytest.raises(OptionError) as caught:
        async with open_store("/t", storage_options="KEY-SECRET"):  # type: ignore[arg-type]
            pass

    assert "SECRET" not in str(caught.value)
