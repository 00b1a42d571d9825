"""Azure's SDK for tests: clients of an emulator, small files, answers."""

from __future__ import annotations

from typing import Any

from azure.core.exceptions import HttpResponseError
from azure.storage.filedatalake.aio import (
    DataLakeFileClient,
    DataLakeServiceClient,
    FileSystemClient,
    LinearRetry,
)

from asynccommit.testing.emulators.adls.emulator import AdlsEmulator


def open_service(
    emulator: AdlsEmulator, credential: Any = None, *, retries: int = 0, **options: Any
) -> DataLakeServiceClient:
    """Return the SDK's client of the emulator's account; it waits for nothing between attempts."""
    policy = LinearRetry(backoff=0, retry_total=retries, random_jitter_range=0)
    chosen = emulator.key if credential is None else credential
    return DataLakeServiceClient(emulator.url, chosen, retry_policy=policy, **options)


async def write(files: FileSystemClient, path: str, data: bytes) -> DataLakeFileClient:
    """Write a small file by create, append and flush."""
    file = await files.create_file(path)
    if data:
        await file.append_data(data, 0)
        await file.flush_data(len(data))
    return file


def answer_of(error: HttpResponseError) -> tuple[int, str]:
    """Return status and error code of the answer that an error stands for."""
    response: Any = error.response
    return response.status_code, response.headers["x-ms-error-code"]
