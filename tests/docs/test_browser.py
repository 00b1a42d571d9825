"""The site as a browser shows it: nothing is cut off, on a wide screen and on a phone."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.snippets import ROOT

SITE = ROOT / "build/site"
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
MEASURE = """
<script>
window.addEventListener("load", () => {
  const blocks = [...document.querySelectorAll("pre > code")];
  const cut = blocks.filter((it) => it.scrollWidth > it.clientWidth + 1);
  document.title = `${blocks.length} blocks, cut: ${cut.map((it) => it.innerText.slice(0, 60))}`;
});
</script>
"""


@pytest.mark.skipif(BROWSER is None, reason="Chromium is not installed")
@pytest.mark.skipif(not SITE.is_dir(), reason="the site is not built: make docs")
@pytest.mark.parametrize("width", [1400, 500])  # the least that Chromium makes a window
@pytest.mark.parametrize("page", ["cli.html", "index.html", "tutorial/first-job.html"])
def test_no_line_of_code_is_cut_off(page: str, width: int, tmp_path: Path) -> None:
    """Each line of a code block is inside the block, however narrow the window is."""
    shutil.copytree(SITE, tmp_path / "site")
    shown = tmp_path / "site" / page
    shown.write_text(shown.read_text("utf-8") + MEASURE, "utf-8")
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += [f"--user-data-dir={tmp_path}/profile", f"--window-size={width},900"]
    done = subprocess.run(
        [*command, "--virtual-time-budget=5000", shown.as_uri()],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )

    title = done.stdout.partition("<title>")[2].partition("</title>")[0]
    assert title.endswith(" blocks, cut: "), title
    assert not title.startswith("0 "), title
