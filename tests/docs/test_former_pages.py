"""The code of the pages of version 0.1, as it was, runs on this version and only warns."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.snippets import ROOT, run_page, snippets

FORMER = sorted((ROOT / "tests/fixtures/former_pages").iterdir())
"""The blocks of the pages with former names, as they were at commit d53da780."""
NAMES_ANOTHER = (
    r"asynccommit[\w.]* (as a block )?is deprecated and goes in the next version: use \w+"
)
WARNS = {"PYTHONWARNINGS": "error::DeprecationWarning,always:asynccommit:DeprecationWarning"}


def _name(page: Path) -> str:
    return page.name


@pytest.mark.every(2)
@pytest.mark.timeout(300)
@pytest.mark.sample(2)
@pytest.mark.parametrize("page", FORMER, ids=_name)
def test_a_former_page_runs_with_warnings(page: Path, tmp_path: Path) -> None:
    """It prints what it printed; each warning is of a former name, and names the present one."""
    errors = run_page(snippets(page), tmp_path, WARNS)

    warned = re.findall(r"DeprecationWarning: (.*)", errors)
    assert warned
    assert [text for text in warned if not re.match(NAMES_ANOTHER, text)] == []
