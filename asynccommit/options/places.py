"""Paths as a caller types them, relative ones included."""

from __future__ import annotations

import os


def located(text: str) -> str:
    """Return a relative path from the working directory; others stay."""
    scheme, colon, _ = text.partition(":")
    if not text or text.startswith("/") or (colon and "/" not in scheme):
        return text
    return os.path.join(os.getcwd(), text)
