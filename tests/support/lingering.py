"""A server that shows empty prefixes, as SeaweedFS does for minutes after a deletion."""

from __future__ import annotations

from asynccommit.errors import NotFoundError
from asynccommit.stores.base import Info, Kind, Page
from asynccommit.testing.models.s3.client import SimS3Store

SHOWN: set[str] = set()
"""Paths of prefixes that are shown, whatever is below them; tests clear it."""


class Lingering(SimS3Store):
    """The model of a bucket, whose listings show the prefixes ``SHOWN`` as directories."""

    async def list(self, path: str, token: str | None = None) -> Page:
        """See ``Store.list``."""
        shown = {one for one in SHOWN if one.rpartition("/")[0] == path}
        try:
            page = await super().list(path, token)
        except NotFoundError:
            if not shown:
                raise
            page = Page(())
        shown -= {info.path for info in page.entries}
        empty = tuple(Info(one, Kind.DIRECTORY) for one in sorted(shown))
        return Page((*page.entries, *empty), page.token)
