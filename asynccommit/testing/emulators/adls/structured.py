"""Read and write structured bodies: segments with a checksum each.

Azure's SDKs send and ask for them under ``x-ms-structured-body``. The format is that of version 1
in azure-storage-blob and azure-storage-file-datalake for Python; the codes of refusals are inferred
but for ``Crc64Mismatch``.
"""

from __future__ import annotations

from struct import Struct

from asynccommit.testing.emulators.adls import headers as sent
from asynccommit.testing.emulators.adls.call import AdlsCall
from asynccommit.testing.models.adls.crc64 import LENGTH, crc64, encode_crc64
from asynccommit.testing.models.adls.refusals import Refusal, refusal

STRUCTURED = "XSM/1.0; properties=crc64"
"""The value of the header."""

_MESSAGE = Struct("<BQHH")  # version, length of the message, properties, number of segments
_SEGMENT = Struct("<HQ")  # its number from one on, length of its content
_VERSION, _CRC64 = 1, 1
_CONTENT = 4 * 1024 * 1024  # of a segment of a response


def is_structured(value: str) -> bool:
    """Return whether a header asks for a structured body.

    Raises ``Refusal`` for another kind of body.
    """
    if value and value.replace(" ", "").lower() != STRUCTURED.replace(" ", "").lower():
        raise refusal("InvalidHeaderValue", f"The structured body {value[:100]!r} is not known.")
    return bool(value)


def take_body(call: AdlsCall) -> None:
    """Check the checksums of a body, and take it out of its structure.

    The answer repeats what was checked.
    """
    headers = call.headers
    if is_structured(headers.get("x-ms-structured-body", "")):
        call.told += f"x-ms-structured-body: {STRUCTURED}\r\n"
        if call.method in ("GET", "HEAD"):  # which ask for one
            return
        length = sent.size(headers, "x-ms-structured-content-length")
        if length is None:
            raise refusal("MissingRequiredHeader")
        call.body = decode_structured(call.request.body)
        if len(call.body) != length:
            raise refusal("InvalidHeaderValue")
    given = sent.content_crc64(headers)
    if given is not None:
        check_crc64(crc64(call.body), given)
        call.told += f"x-ms-content-crc64: {headers['x-ms-content-crc64']}\r\n"


def encode_structured(data: bytes) -> bytes:
    """Return the structured body of ``data``."""
    starts = range(0, max(1, len(data)), _CONTENT)
    length = _MESSAGE.size + len(starts) * (_SEGMENT.size + LENGTH) + len(data) + LENGTH
    parts = [_MESSAGE.pack(_VERSION, length, _CRC64, len(starts))]
    for number, start in enumerate(starts, 1):
        content = data[start : start + _CONTENT]
        parts += [_SEGMENT.pack(number, len(content)), content, encode_crc64(crc64(content))]
    return b"".join([*parts, encode_crc64(_whole(data, len(starts), parts[-1]))])


def _whole(data: bytes, segments: int, last: bytes) -> int:
    """Return the checksum of the content, which a single segment shares."""
    return int.from_bytes(last, "little") if segments == 1 else crc64(data)


def decode_structured(body: bytes) -> bytes:
    """Return the content of a structured body.

    Raises ``Refusal`` if it is malformed, or a checksum is wrong.
    """
    if len(body) < _MESSAGE.size:
        raise _malformed("it ends in its header")
    version, length, properties, segments = _MESSAGE.unpack_from(body)
    if (version, length, properties) != (_VERSION, len(body), _CRC64) or not segments:
        raise _malformed("its header is not that of the body")
    position, contents = _MESSAGE.size, []
    for number in range(1, segments + 1):
        content, position = _segment(body, position, number)
        contents.append(content)
    if len(body) != position + LENGTH:
        raise _malformed("its length is not that of its segments")
    found = b"".join(contents)
    check_crc64(_whole(found, segments, body[position - LENGTH : position]), body[position:])
    return found


def _segment(body: bytes, position: int, number: int) -> tuple[bytes, int]:
    """Return the content of a segment, and the position after it."""
    start = position + _SEGMENT.size
    if start > len(body):
        raise _malformed("it ends in a segment")
    told, length = _SEGMENT.unpack_from(body, position)
    end = start + length + LENGTH
    if told != number or end > len(body):
        raise _malformed(f"segment {number} is not as its header says")
    content = body[start : start + length]
    check_crc64(crc64(content), body[start + length : end])
    return content, end


def check_crc64(computed: int, given: bytes) -> None:
    """Raise ``Refusal`` unless the two checksums are the same."""
    if encode_crc64(computed) != given:
        raise refusal("Crc64Mismatch")


def _malformed(why: str) -> Refusal:
    return refusal("InvalidInput", f"The structured body is invalid: {why}.")
