"""The account of development, and how clients are led to it."""

from __future__ import annotations

DEVELOPMENT_ACCOUNT = "devstoreaccount1"
DEVELOPMENT_KEY = (  # Published with the emulator of the blob service; it protects nothing.
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)


def connection_string(url: str, account: str, key: str) -> str:
    """Return the connection string of an account with one URL."""
    return (
        f"DefaultEndpointsProtocol={url.partition(':')[0]};AccountName={account};"
        f"AccountKey={key};BlobEndpoint={url};DfsEndpoint={url};"
    )
