"""Emulator of Google Cloud Storage over HTTP."""
