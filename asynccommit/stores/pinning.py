"""The contract of a store that can hold directories: their names may be given to others since."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from asynccommit.stores.base import Store
from asynccommit.stores.grant import Pins


class PinningStore(Store, Protocol):
    """A store whose requests can be tied to directories themselves instead of to their names."""

    async def pin(self, places: Sequence[str], families: Sequence[str] = ()) -> Pins:
        """Hold the directories at ``places``, for requests under their grant.

        There a path at or below one of the places leads to that very directory, or nowhere
        (``NotFoundError``) once it has been moved away or deleted, even if another has taken its
        name. The same is true of a place where nothing is, until a request under the grant makes
        the directory or renames one to it. A place whose directory such a request renames is held
        no longer: its path is looked up below the places that remain.

        ``families`` are directories that others use as well. What is directly in one of them is
        held for each rename of something below it, from before the grant is looked at.
        """
        ...
