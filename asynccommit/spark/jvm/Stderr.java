package org.asynccommit.spark;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What the child prints, for the log: its log records at their level, anything else as information.
 */
final class Stderr extends Thread {
  private static final Logger LOG = LoggerFactory.getLogger("org.asynccommit.spark.Engine");
  private static final int LONGEST = 4000; // bytes of a line; the rest is a line of its own

  private final InputStream in;
  private String level = "";
  private String last = "";

  Stderr(InputStream in) {
    super("asynccommit-stderr");
    this.in = in;
    setDaemon(true);
  }

  /** Returns the last line, which is the reason if the child ends with an error. */
  synchronized String last() {
    return last;
  }

  public void run() {
    byte[] line = new byte[LONGEST];
    int length = 0;
    byte[] read = new byte[8192];
    try {
      for (int count = in.read(read); count >= 0; count = in.read(read)) {
        for (int i = 0; i < count; i++) {
          if (read[i] == '\n' || read[i] == '\r' || length == LONGEST) {
            tell(new String(line, 0, length, StandardCharsets.UTF_8));
            length = 0;
          }
          if (read[i] != '\n' && read[i] != '\r') {
            line[length] = read[i];
            length++;
          }
        }
      }
    } catch (IOException e) {
      LOG.debug("The child's stderr has ended", e);
    }
    tell(new String(line, 0, length, StandardCharsets.UTF_8));
  }

  private synchronized void tell(String line) {
    if (line.trim().length() == 0) {
      return;
    }
    last = line.trim();
    if (!line.startsWith(" ")) { // child.py indents what belongs to the record before
      level = line.substring(0, Math.max(0, line.indexOf(' ')));
    }
    if ("ERROR".equals(level) || "CRITICAL".equals(level)) {
      LOG.error(line);
    } else if ("WARNING".equals(level)) {
      LOG.warn(line);
    } else {
      LOG.info(line);
    }
  }
}
