package org.asynccommit.testing;

/** Runs {@code asynccommit emulate adls} as a process of this machine. */
public class AdlsProcess extends EmulatorProcess implements AdlsEmulator {
  /** Runs the command on the path, with these options. */
  public static AdlsProcess start(String... options) {
    return new AdlsProcess("asynccommit", options);
  }

  /** Runs the command at this path, with these options. */
  public AdlsProcess(String program, String... options) {
    super(program, "adls", options);
  }
}
