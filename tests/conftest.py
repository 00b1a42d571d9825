"""What every test has: a guard against blocking the event loop."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from blockbuster import BlockBuster, blockbuster_ctx
from hypothesis import settings

# How long an example takes is the machine's business.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(autouse=True)
def blockbuster() -> Iterator[BlockBuster]:
    """Fail a test whose code under test makes a blocking call on the event loop."""
    with blockbuster_ctx("asynccommit") as guard:
        yield guard
