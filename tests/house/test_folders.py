"""Every folder of the package says its purpose."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = sorted({path.parent for path in (ROOT / "asynccommit").rglob("*.py")})
QUESTIONS = {"How", "What", "When", "Where", "Which", "Who", "Whose", "Why"}
LONGEST = 100


def _name(folder: Path) -> str:
    return str(folder.relative_to(ROOT))


@pytest.mark.parametrize("folder", FOLDERS, ids=_name)
def test_folder_says_its_purpose_in_one_line(folder: Path) -> None:
    """The docstring of each ``__init__.py`` is one short line that begins with its subject."""
    text = (folder / "__init__.py").read_text("utf-8")
    said = ast.get_docstring(ast.parse(text), clean=False) or ""

    assert said.endswith(".")
    assert len(said.splitlines()) == 1
    assert len(f'"""{said}"""') <= LONGEST
    assert said.split()[0] not in QUESTIONS
