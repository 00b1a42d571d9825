"""The frames between the JVM and its child: what is read back, and what is refused."""

from __future__ import annotations

import io

import pytest

from asynccommit.spark import frames
from asynccommit.spark.frames import Frame, FrameError, FrameKind, read_frame

FRAMES = [
    Frame(FrameKind.REQUEST, 1, b'{"what": "check"}'),
    Frame(FrameKind.ANSWER, 2**63, "é".encode()),
    Frame(FrameKind.BYE),
    Frame(FrameKind.FAILURE, 7, b"x" * 100_000),
]


def test_frames_are_read_as_they_were_written() -> None:
    """Kinds, numbers and texts come back in order, then the end."""
    stream = io.BytesIO(b"".join(frame.encode() for frame in FRAMES))

    assert [read_frame(stream.read) for _ in FRAMES] == FRAMES
    assert read_frame(stream.read) is None


def test_a_cut_frame_is_the_end() -> None:
    """Wherever the other side has died, what it had begun to send is not there."""
    whole = FRAMES[0].encode()

    for length in range(len(whole)):
        assert read_frame(io.BytesIO(whole[:length]).read) is None


@pytest.mark.parametrize(
    "text,said",
    [
        (b"\x00\x00\x00\x08R\x00\x00\x00\x00\x00\x00\x00\x01", "a frame of 8 bytes"),
        (b"\xff\xff\xff\xffR\x00\x00\x00\x00\x00\x00\x00\x01", "a frame of 4294967295 bytes"),
        (b"\x00\x00\x00\x09?\x00\x00\x00\x00\x00\x00\x00\x01", "a frame of kind b'\\?'"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "a frame of 1213486160 bytes"),
    ],
)
def test_what_is_no_frame_is_refused(text: bytes, said: str) -> None:
    """A length out of bounds is not even waited for, and an unknown kind is not passed over."""
    with pytest.raises(FrameError, match=said):
        read_frame(io.BytesIO(text + b"x" * 100).read)


def test_a_text_that_is_too_long_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sender refuses what the other side would take for no frame."""
    monkeypatch.setattr(frames, "LARGEST", 10)

    assert len(Frame(FrameKind.ANSWER, 1, b"x" * 10).encode()) == 23
    with pytest.raises(FrameError, match="a message of 11 bytes, and at most 10 are sent"):
        Frame(FrameKind.ANSWER, 1, b"x" * 11).encode()
