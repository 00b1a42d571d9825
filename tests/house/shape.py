"""The shape of ``commit/`` in figures: ``python -m tests.house.shape`` prints them.

They are lines of a table that is filled in again while ``commit/`` is put together anew.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

COMMIT = Path(__file__).parents[2] / "asynccommit" / "commit"
ONE_FILE = {"Entry"}
"""Who takes one of these as an argument decides, does, settles or undoes something of one file."""
BEFORE = {
    *("entries", "load_etags", "load_manifests", "plan", "plan_check", "plan_file", "preflight"),
    *("quotas", "scan_task", "uncommittable", "unfit_sources", "validate", "write_modes"),
    *("movability", "conflicts", "concurrent_jobs", "save_manifest", "load_tasks"),
}
"""Modules that read and plan, before anything has happened to a file, and validation."""
_OF_CONTEXT = re.compile(r"((?:self\._?)?(?:run|context|undo)\.|self\.)([a-z]\w*)")


def floors(folder: Path) -> int:
    """Return the length of the longest chain of imports among the modules of a folder."""
    modules = {path.stem: path for path in folder.glob("*.py") if path.stem != "__init__"}
    prefix = ".".join(("asynccommit", *folder.relative_to(COMMIT.parent).parts, ""))
    above: dict[str, int] = {}

    def height(name: str) -> int:
        if name not in above:
            above[name] = 1  # of a circle, which import-linter refuses
            used = _imported(modules[name], prefix) & modules.keys()
            above[name] = 1 + max(map(height, sorted(used)), default=0)
        return above[name]

    return max(map(height, modules), default=0)


def _imported(path: Path, prefix: str) -> set[str]:
    found = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(prefix):
            found.add((node.module or "").removeprefix(prefix).partition(".")[0])
    return found


def about_one_file() -> list[str]:
    """Return the modules of commits by renames that say what can happen to one planned file."""
    folders = ("by_rename", "ownership", "planning", "steps", "tasks")
    modules = {path.stem: path for name in folders for path in (COMMIT / name).glob("*.py")}
    return sorted(name for name in modules.keys() - BEFORE if ONE_FILE & _taken(modules[name]))


def _taken(path: Path) -> set[str]:
    """Return the names of types that functions of a module take."""
    made = (ast.FunctionDef, ast.AsyncFunctionDef)
    each = [it.args for it in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(it, made)]
    notes = [arg.annotation for args in each for arg in (*args.args, *args.kwonlyargs)]
    return {
        name.id
        for note in notes
        if note is not None
        for name in ast.walk(note)
        if isinstance(name, ast.Name)
    }


def mutable_fields() -> list[str]:
    """Return the fields of the context of a commit that something sets, or sets a field of.

    The meter is one: it counts.
    """
    tree = ast.parse((COMMIT / "context.py").read_text("utf-8"))
    context = next(it for it in tree.body if getattr(it, "name", "") == "CommitContext")
    assert isinstance(context, ast.ClassDef)
    fields = [ast.unparse(it.target) for it in context.body if isinstance(it, ast.AnnAssign)]
    return [name for name in fields if name in {"meter"} | {place.split()[1] for place in places()}]


def places() -> list[str]:
    """Return the places that set a field of the context, or of what is in it but the meter."""
    return [
        f"{path.relative_to(COMMIT)}: {name}"
        for path in sorted(COMMIT.rglob("*.py"))
        for name in _set_in(ast.parse(path.read_text("utf-8")), here=path.stem == "context")
    ]


def _set_in(tree: ast.AST, *, here: bool) -> list[str]:
    made = (it for it in ast.walk(tree) if isinstance(it, ast.Assign | ast.AugAssign))
    targets = [
        t for it in made for t in (it.targets if isinstance(it, ast.Assign) else [it.target])
    ]
    each = [one for it in targets for one in (it.elts if isinstance(it, ast.Tuple) else [it])]
    found = (_OF_CONTEXT.match(ast.unparse(one)) for one in each)
    return [it[2] for it in found if it and (it[1] != "self." or here) and it[2] != "meter"]


def main() -> int:
    """Print the figures."""
    folders = [COMMIT, *sorted(path.parent for path in COMMIT.rglob("*/__init__.py"))]
    heights = {str(folder.relative_to(COMMIT.parent)): floors(folder) for folder in folders}
    lines = [
        f"modules that say what can happen to one file: {', '.join(about_one_file())}",
        *(f"floors of {name}: {height}" for name, height in heights.items()),
        f"mutable fields of the context: {len(mutable_fields())}: {', '.join(mutable_fields())}",
        f"places that set them: {len(places())}",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
