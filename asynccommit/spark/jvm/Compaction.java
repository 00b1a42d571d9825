package org.asynccommit.spark;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.unsafe.Platform;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * Adds a batch to the log of a file sink that repeats all entries before it, by copying their lines.
 *
 * <p>Spark reads each entry from its text and writes it again, one after the other. The text is the
 * same. With a retention some entries are left out, which is Spark's to do.
 */
final class Compaction {
  private static final byte[] VERSION = {'v', '1'};
  private static final int BUFFER = 1 << 20;

  private final @SINK@.FileStreamSinkLog log;
  private final FileSystem fs;
  private final List parts = new ArrayList(); // the files before it, in their order

  private Compaction(@SINK@.FileStreamSinkLog log, FileSystem fs) {
    this.log = log;
    this.fs = fs;
  }

  /** Returns that of a batch; null if it repeats nothing, or only Spark can write it. */
  static Compaction of(@SINK@.FileStreamSinkLog log, FileSystem fs, long batch) throws IOException {
    int interval = log.compactInterval();
    if ((batch + 1) % interval != 0 || log.retentionMs() != Long.MAX_VALUE) {
      return null;
    }
    Compaction made = new Compaction(log, fs);
    for (long each = Math.max(0, batch - interval); each < batch; each++) {
      Path part = log.batchIdToPath(each);
      if (!made.canCopy(part)) {
        return null;
      }
      made.parts.add(part);
    }
    return made;
  }

  /** Whether a file is of the version that is written, and may be followed by more. */
  private boolean canCopy(Path part) throws IOException {
    InputStream in = fs.open(part);
    try {
      byte[] head = new byte[VERSION.length + 1];
      int length = read(in, head);
      boolean empty = length == VERSION.length;
      boolean more = length > VERSION.length && head[VERSION.length] == '\n';
      return (empty || more) && Arrays.equals(VERSION, Arrays.copyOf(head, VERSION.length));
    } finally {
      in.close();
    }
  }

  /**
   * Writes the file of the batch.
   *
   * @param files what the batch itself adds
   * @return false if another writer has added a batch of this number
   */
  boolean add(long batch, final @SINK@.SinkFileStatus[] files) {
    return log.addNewBatchByStream(
        batch,
        new AbstractFunction1() {
          public Object apply(Object out) {
            try {
              write((OutputStream) out, files);
            } catch (IOException e) {
              Platform.throwException(e);
            }
            return BoxedUnit.UNIT;
          }
        });
  }

  private void write(OutputStream out, @SINK@.SinkFileStatus[] files) throws IOException {
    out.write(VERSION);
    byte[] buffer = new byte[BUFFER];
    for (int i = 0; i < parts.size(); i++) {
      InputStream in = fs.open((Path) parts.get(i));
      try {
        read(in, new byte[VERSION.length]);
        for (int length = in.read(buffer); length >= 0; length = in.read(buffer)) {
          out.write(buffer, 0, length);
        }
      } finally {
        in.close();
      }
    }
    ByteArrayOutputStream own = new ByteArrayOutputStream();
    log.serialize(files, own);
    out.write(own.toByteArray(), VERSION.length, own.size() - VERSION.length);
  }

  private static int read(InputStream in, byte[] into) throws IOException {
    int length = 0;
    while (length < into.length) {
      int more = in.read(into, length, into.length - length);
      if (more < 0) {
        break;
      }
      length += more;
    }
    return length;
  }
}
