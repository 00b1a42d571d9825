package org.asynccommit.spark;

import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;

/**
 * A message between this JVM and its child: a length, a kind, a number and a text; see frames.py.
 *
 * <p>A request and its answer have the same number. Each side counts its own requests.
 */
final class Frame {
  static final byte HELLO = 'H';
  static final byte REQUEST = 'R';
  static final byte ANSWER = 'A';
  static final byte FAILURE = 'F';
  static final byte BYE = 'B';

  /** The most bytes of a text. */
  static final int LARGEST = 256 << 20;

  private static final int HEAD = 9; // kind and number
  private static final int NOISE = 1 << 16; // what an interpreter may print while it starts

  final byte kind;
  final long number;
  final String text;

  Frame(byte kind, long number, String text) {
    this.kind = kind;
    this.number = number;
    this.text = text;
  }

  /** Returns the bytes. Nothing of a text that is too long is sent. */
  byte[] bytes() throws IOException {
    byte[] body = text.getBytes(StandardCharsets.UTF_8);
    if (body.length > LARGEST) {
      throw new IOException(
          "a message of " + body.length + " bytes, and at most " + LARGEST + " are sent");
    }
    ByteArrayOutputStream made = new ByteArrayOutputStream(body.length + 4 + HEAD);
    DataOutputStream out = new DataOutputStream(made);
    out.writeInt(body.length + HEAD);
    out.writeByte(kind);
    out.writeLong(number);
    out.write(body);
    return made.toByteArray();
  }

  /** Reads a frame. Throws EOFException at the end, in the middle of one as well. */
  static Frame read(DataInputStream in) throws IOException {
    int length = in.readInt();
    if (length < HEAD || length > LARGEST + HEAD) {
      throw new IOException("a frame of " + length + " bytes");
    }
    byte kind = in.readByte();
    long number = in.readLong();
    byte[] body = in.readNBytes(length - HEAD);
    if (body.length < length - HEAD) {
      throw new EOFException("the end in the middle of a frame");
    }
    return new Frame(kind, number, new String(body, StandardCharsets.UTF_8));
  }

  /** Reads up to the line that begins the frames; returns what was before it. */
  static String skipTo(InputStream in, String line) throws IOException {
    StringBuilder read = new StringBuilder();
    String end = line + "\n";
    while (read.indexOf(end, Math.max(0, read.length() - end.length())) < 0) {
      int one = in.read();
      if (one < 0) {
        throw new EOFException("the end before the first frame");
      }
      if (read.length() > NOISE) {
        throw new IOException("it prints too much before the first frame");
      }
      read.append((char) one);
    }
    return read.substring(0, read.length() - end.length());
  }
}
