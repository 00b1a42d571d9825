"""The page of a job, also as a browser sees it."""

from __future__ import annotations

import asyncio
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from asynccommit import sync
from asynccommit.formats.course import Course
from asynccommit.inspect.page import page
from asynccommit.inspect.saved import JobRecord
from asynccommit.inspect.status import look_under
from asynccommit.results import JobReport, Partition, StageTime, Timeline
from asynccommit.stores.urls import parse_url
from tests.cli.support import cut_short
from tests.support.browser import dom, find_browser, screenshot
from tests.support.jobs import JOB
from tests.support.slow_job import commit_slow_job

HOSTILE = "<script>document.title='taken'</script>\"'&$\\frac{}$\x1b[31m"


def written(table: Path) -> JobReport:
    """Commit a small job."""
    with sync.open_job(table) as job, job.task(0) as task:
        for number in range(20):
            task.put(f"day={number % 3}/part-{number}", b"x" * number)
    return job.report


class Outline(HTMLParser):
    """The sections and plots of a page, and whether its elements are balanced."""

    VOID = ("meta", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.sections: list[str] = []
        self.plots: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the element."""
        self.tags.add(tag)
        told = dict(attrs)
        if tag == "section":
            self.sections.append(told["id"] or "")
        if "data-plot" in told:
            self.plots.append(told["data-plot"] or "")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Check that the innermost element ends."""
        assert self.open.pop() == tag


def test_page_of_a_report_has_all_sections(tmp_path: Path) -> None:
    """A report of this process becomes a page with stages, rate, latencies and directories."""
    outline = Outline(written(tmp_path / "t").to_html())

    assert outline.open == []
    assert outline.sections == ["stages", "rate", "latency", "throttling", "partitions", "files"]
    assert outline.plots == ["stages", "rate", "latency", "partitions"]
    assert outline.tags.isdisjoint({"script", "link", "img", "iframe", "object"})


def test_saved_page_needs_no_other_file(tmp_path: Path) -> None:
    """``save_html`` writes one file without an address that a browser would load."""
    written(tmp_path / "t").save_html(tmp_path / "page.html")

    text = (tmp_path / "page.html").read_text("utf-8")
    assert text.startswith("<!doctype html>")
    assert re.findall(r'(?:src|url)\s*[=(]\s*["\']?(?!#)(\w+:)?//', text) == []
    assert "default-src 'none'" in text


def hostile_record() -> JobRecord:
    """Return a record all of whose texts are hostile."""
    timeline = Timeline(
        1,
        (StageTime(HOSTILE, 0.0, 1.0),),
        1.0,
        (1,),
        (0,),
        (0.0,),
        {HOSTILE: ((0.1, 1),)},
        (Partition(HOSTILE, 1, 1),),
        1,
    )
    course = Course(
        HOSTILE, timeline, files=1, sent=1, recovered={HOSTILE: 1}, waited={HOSTILE: 1.0}
    )
    texts = (HOSTILE,)
    return JobRecord(
        HOSTILE,
        HOSTILE,
        HOSTILE,
        1,
        HOSTILE,
        HOSTILE,
        course,
        {HOSTILE: 1.0},
        HOSTILE,
        texts,
        texts,
    )


def test_hostile_names_are_shown_and_do_nothing() -> None:
    """Markup, formulas and control characters in any text are escaped, in the plots too."""
    text = page(hostile_record())

    assert "<script" not in text
    assert "\x1b" not in text
    assert Outline(text).plots == ["stages", "rate", "latency", "partitions"]
    assert text.count("&lt;script&gt;") > 10


def test_page_names_the_commands_for_what_is_left(tmp_path: Path) -> None:
    """An interrupted commit is under what is left to do, with both commands."""
    cut_short(tmp_path / "t")
    situation = asyncio.run(look_under(parse_url(str(tmp_path / "t"))))

    text = page(JobRecord("", str(tmp_path), "no job"), situation)

    assert "left" in Outline(text).sections
    assert f"asynccommit resume file:{tmp_path}/t --job-id {JOB}" in text
    assert f"asynccommit abort file:{tmp_path}/t --job-id {JOB} --rollback" in text


@pytest.mark.full
@pytest.mark.skipif(find_browser() is None, reason="no chromium was found")
def test_browser_shows_the_page_of_a_slow_job(tmp_path: Path) -> None:
    """A browser draws all plots, shows the refusals, and takes a picture that is not empty."""
    report = commit_slow_job(600, 200)
    report.save_html(tmp_path / "page.html")

    shown = dom(tmp_path / "page.html")
    screenshot(tmp_path / "page.html", tmp_path / "page.png")

    assert report.refused > 0
    assert shown.count("<svg") == 4
    assert "mathdefault" not in shown
    assert "refused by the store" in shown
    assert f"{report.refused:,}" in shown
    assert (tmp_path / "page.png").read_bytes()[:4] == b"\x89PNG"
    assert (tmp_path / "page.png").stat().st_size > 50_000


@pytest.mark.full
@pytest.mark.skipif(find_browser() is None, reason="no chromium was found")
def test_browser_runs_nothing_of_a_hostile_page(tmp_path: Path) -> None:
    """In a browser the title is what it was, and no script is in the document."""
    (tmp_path / "page.html").write_text(page(hostile_record()), "utf-8")

    shown = dom(tmp_path / "page.html")

    assert "<title>taken" not in shown
    assert "<script" not in shown
