"""A headless Chromium: what it makes of a page."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_PATIENCE = 90


def find_browser() -> str | None:
    """Return the path of a browser, ``None`` if there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def dom(page: Path) -> str:
    """Return the document of a page after the browser has read it."""
    return _run(page, "--dump-dom")


def screenshot(page: Path, picture: Path, size: tuple[int, int] = (1100, 2400)) -> None:
    """Take a picture of a page."""
    width, height = size
    _run(page, f"--screenshot={picture}", f"--window-size={width},{height}")


def trim(picture: Path) -> None:
    """Cut the empty margin of a picture, and reduce its colours for size."""
    from PIL import Image, ImageChops

    with Image.open(picture) as opened:
        whole = opened.convert("RGB")
    empty = Image.new("RGB", whole.size, (255, 255, 255))
    box = ImageChops.difference(whole, empty).getbbox()
    assert box is not None
    cut = whole.crop((0, 0, whole.width, min(whole.height, box[3] + 20)))
    cut.quantize(64).save(picture, optimize=True)


def _run(page: Path, *flags: str) -> str:
    browser = find_browser()
    assert browser is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [browser, *_QUIET, f"--user-data-dir={profile}", *flags, page.as_uri()]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PATIENCE, check=True
        )
    return done.stdout
