"""Show the results of commits and bulk operations.

It is the ``Display`` of ``asynccommit.showing``.
"""

from __future__ import annotations

from functools import singledispatch

from rich.console import RenderableType

from asynccommit.engine.report import BulkReport
from asynccommit.engine.verification import VerifyReport
from asynccommit.inspect import html, page, text
from asynccommit.inspect.text import bulk_report, verify_report
from asynccommit.results import AbortReport, JobReport, JobStatus
from asynccommit.runtime.cells import printed

__all__ = ["as_html", "as_rich", "page_of", "printed"]


@singledispatch
def as_rich(result: object) -> RenderableType:
    """See ``Display.as_rich``."""
    raise TypeError(f"a {type(result).__name__} cannot be shown")


as_rich.register(JobReport, text.as_rich)
as_rich.register(JobStatus, text.as_rich)
as_rich.register(AbortReport, text.as_rich)
as_rich.register(BulkReport, bulk_report)
as_rich.register(VerifyReport, verify_report)


def as_html(result: JobReport | JobStatus | AbortReport) -> str:
    """See ``Display.as_html``."""
    return html.as_html(result)


def page_of(report: JobReport) -> str:
    """See ``Display.page_of``. Raises ``UnsupportedError`` without matplotlib."""
    return page.page_of(report)
