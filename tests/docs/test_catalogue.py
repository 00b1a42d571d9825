"""The page of the tests that hold the protocol names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_named_tests_exist() -> None:
    """Every test function and file that the page names is there."""
    page = (ROOT / "docs/protocol-tests.md").read_text()
    code = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    functions = set(re.findall(r"`(test_\w+)`", page))
    files = set(re.findall(r"`([\w/]*test_\w+\.py)`", page))

    assert len(functions) > 20
    assert {name for name in functions if f"def {name}(" not in code} == set()
    assert {name for name in files if not (ROOT / "tests" / name).exists()} == set()
