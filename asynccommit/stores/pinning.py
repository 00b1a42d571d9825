"""The contract of a store that can pin directories.

The name of a pinned directory may be given to another one later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from asynccommit.stores.base import Store
from asynccommit.stores.grant import Pins


class PinningStore(Store, Protocol):
    """A store whose requests can be tied to directories, not only names."""

    async def pin(self, places: Sequence[str], roots: Sequence[str] = ()) -> Pins:
        """Hold the directories at ``places``, for requests under their grant.

        There a path at or below one of the places leads to that very directory, or nowhere
        (``NotFoundError``) once it has been moved away or deleted, even if another has taken its
        name. The same is true of a place where nothing is, until a request under the grant makes
        the directory or renames one to it. A place whose directory such a request renames is held
        no longer: its path is looked up below the places that remain.

        ``roots`` are directories that users have named; each may be a link. Below the roots and the
        places no link is followed: a request that would have to raises ``RejectedError``, which
        names the link. Directories on the way are opened before the grant is checked.
        """
        ...
