"""The documentation site has every page, and its hooks leave nothing behind that it cannot show."""

from __future__ import annotations

import ast
import re

import asynccommit
from tests.support.snippets import ROOT

SITE = (ROOT / "mkdocs.yml").read_text("utf-8")
NAVIGATION = SITE.partition("\nnav:\n")[2]


def test_every_page_is_in_the_navigation() -> None:
    """Each page of ``docs`` is in the navigation once, and no other is."""
    named = re.findall(r": (\S+\.md)$", NAVIGATION, re.MULTILINE)
    pages = [str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")]

    assert sorted(name for name in named if not name.startswith("project/")) == sorted(pages)


def test_pages_from_outside_exist() -> None:
    """A page that the site takes from the root of the repository is there."""
    named = re.findall(r"project/(\S+)$", NAVIGATION, re.MULTILINE)

    assert len(named) == 3
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_tools_of_the_site_are_locked() -> None:
    """Every package of ``docs.in`` is in the lock file, with hashes."""
    wanted = re.findall(r"^([\w-]+)>=", (ROOT / "requirements/docs.in").read_text(), re.MULTILINE)
    locked = (ROOT / "requirements/docs.txt").read_text("utf-8")

    assert wanted
    assert [name for name in wanted if not re.search(rf"^{name}==\S+ ", locked, re.M)] == []
    assert locked.count("==") <= locked.count("--hash=sha256:")


def test_page_of_the_package_has_each_name_by_its_task() -> None:
    """The page of the API begins with the job, and has every public name of the package once."""
    text = (ROOT / "website/hooks.py").read_text("utf-8")
    found = re.search(r"^GROUPS = (\{.*?^\})$", text, re.MULTILINE | re.DOTALL)
    assert found
    names = [name for group in ast.literal_eval(found[1]).values() for name in group]

    assert names[0] == "open_job"
    assert sorted([*names, "__version__"]) == sorted(asynccommit.__all__)
