"""Hooks of MkDocs that let the pages be the ones that the repository shows.

- The info string of a code block says how the tests run it; only its language is left.
- CHANGELOG, CONTRIBUTING and SECURITY lie outside of ``docs``; they become pages of the site.
- Each public package gets a page of its API, made from its docstrings.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
OUTSIDE = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
GROUPS = {
    "Run a job": ("open_job", "Job", "Task", "Writer", "TaskCommit", "Mode"),
    "A job from anywhere, also after a crash": (
        "job",
        "JobHandle",
        "job_statuses",
        "JobStatus",
        "JobState",
    ),
    "Reports and progress": ("JobReport", "AbortReport", "Progress"),
    "Open a store": ("open_store", "Store", "Info", "Page", "Traits"),
    "Options": ("Options", "UploadOptions", "OnFailure", "OnUnfinished", "OptionWarning"),
    "For authors of engines": ("CommitterWarning",),
    "Errors of arguments": ("AsyncCommitError", "OptionError", "UrlError", "UnsupportedError"),
    "Errors of jobs": (
        "CommitError",
        "PreflightError",
        "ValidationError",
        "CommitUnknownError",
        "UnfinishedError",
        "ForeignCommitError",
        "CommittedError",
        "OwnedError",
        "LeaseLostError",
        "ManifestError",
    ),
    "Errors of stores": (
        "StoreError",
        "ThrottledError",
        "UnavailableError",
        "OutcomeUnknownError",
        "NotFoundError",
        "ExistsError",
        "PreconditionError",
        "DeniedError",
        "RejectedError",
    ),
}
"""The names of the package itself, by what one does with them."""

_FENCE = re.compile(r"^( *```)(\w+)[ \w.-]*$", re.MULTILINE)
_PACKAGE = re.compile(r"^\| `(asynccommit[a-z.]*)` \| (.*) \|$", re.MULTILINE)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are not files of ``docs``."""
    for name in OUTSIDE:
        text = (ROOT / name).read_text("utf-8").replace("](docs/", "](../")
        files.append(File.generated(config, f"project/{name}", content=text))
    for package, what in _packages():
        files.append(File.generated(config, f"api/{package}.md", content=_page(package, what)))
    return files


def on_config(config: Any) -> Any:
    """Put the API's pages into the navigation."""
    pages = [{package: f"api/{package}.md"} for package, _ in _packages()]
    for entry in config.nav:
        if "API" in entry:
            entry["API"] = pages
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the text of a page as the site shows it."""
    if not page.file.src_uri.startswith("project/"):
        for name in OUTSIDE:
            markdown = markdown.replace(f"](../{name}", f"](project/{name}")
    return _FENCE.sub(r"\1\2", markdown)


def _packages() -> list[tuple[str, str]]:
    """Return the public packages with their purpose, as the architecture page lists them."""
    text = (ROOT / "docs/architecture.md").read_text("utf-8")
    section = text.partition("## Public surface\n")[2].partition("\n## ")[0]
    return _PACKAGE.findall(section)


def _page(package: str, what: str) -> str:
    head = f"# {package}\n\n{what[0].upper()}{what[1:]}.\n\n"
    if package != "asynccommit":
        return f"{head}::: {package}\n"
    return head + "\n".join(_group(title, names) for title, names in GROUPS.items())


def _group(title: str, names: tuple[str, ...]) -> str:
    shown = "\n".join(
        f"::: asynccommit.{name}\n    options:\n      heading_level: 3\n"
        "      show_root_heading: true\n      show_root_toc_entry: true\n"
        "      show_root_full_path: false\n"
        for name in names
    )
    return f"## {title}\n\n{shown}"
