package org.asynccommit.testing;

/** Runs {@code asynccommit emulate gcs} as a process of this machine. */
public class GcsProcess extends EmulatorProcess implements GcsEmulator {
  /** Runs the command on the path, with these options. */
  public static GcsProcess start(String... options) {
    return new GcsProcess("asynccommit", options);
  }

  /** Runs the command at this path, with these options. */
  public GcsProcess(String program, String... options) {
    super(program, "gcs", options);
  }
}
