package org.asynccommit.testing;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * An emulator as a process of this machine, where there are no containers: {@code pip install
 * 'asynccommit[emulate]'} is all that it needs. It ends with {@link #close}, or with this JVM.
 */
public abstract class EmulatorProcess implements Emulator, AutoCloseable {
  private static final Pattern ENDPOINT = Pattern.compile("\"endpoint\": *\"([^\"]+)\"");
  private final Process process;
  private final String endpoint;

  /**
   * Starts the process, on a free port, and waits until it listens.
   *
   * @param program the command {@code asynccommit}, or the path of one
   * @param store {@code adls} or {@code gcs}
   * @param options of {@code asynccommit emulate}
   * @throws UncheckedIOException if the command cannot be run
   * @throws IllegalStateException if it ends before it listens; its standard error, which is that
   *     of this JVM, has the reason
   */
  EmulatorProcess(String program, String store, String... options) {
    List<String> command = new ArrayList<>(List.of(program, "emulate", store));
    command.addAll(List.of("--port", "0", "--json"));
    command.addAll(List.of(options));
    try {
      process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    } catch (IOException error) {
      throw new UncheckedIOException(
          "cannot run " + program + ": install it with pip install 'asynccommit[emulate]', or give "
              + "the path of the command",
          error);
    }
    Runtime.getRuntime().addShutdownHook(new Thread(process::destroy));
    endpoint = readEndpoint(String.join(" ", command));
  }

  @Override
  public String getEndpoint() {
    return endpoint;
  }

  @Override
  public void close() {
    process.destroy();
    try {
      if (!process.waitFor(10, TimeUnit.SECONDS)) {
        process.destroyForcibly();
      }
    } catch (InterruptedException error) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
    }
  }

  private String readEndpoint(String command) {
    BufferedReader facts = process.inputReader(StandardCharsets.UTF_8);
    try {
      for (String line = facts.readLine(); line != null; line = facts.readLine()) {
        Matcher found = ENDPOINT.matcher(line);
        if (found.find()) {
          return found.group(1);
        }
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    throw new IllegalStateException(command + " ended before it listened");
  }
}
