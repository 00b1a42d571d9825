"""Give a mortal process access to a bucket of the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asynccommit.stores.urls import Address
from asynccommit.testing.models.crashes import MortalSender, Process
from asynccommit.testing.models.s3.client import SimS3Store
from asynccommit.testing.models.s3.dialect import WRITES


class MortalS3Store(MortalSender, SimS3Store):
    """The simulated store, as one process reaches it. See ``MortalStore``.

    Args:
        address: see ``SimS3Store``.
        options: see ``SimS3Store``.
        process: process that sends the requests.
    """

    _writes = WRITES

    def __init__(self, address: Address, options: Mapping[str, Any], process: Process) -> None:
        super().__init__(address, options)
        self._process = process
