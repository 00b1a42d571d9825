package org.asynccommit.testing;

import java.util.ArrayList;
import java.util.List;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;
import org.testcontainers.utility.DockerImageName;

/** Runs {@code asynccommit emulate} in a container of the image that Containerfile builds. */
public abstract class EmulatorContainer<S extends EmulatorContainer<S>> extends GenericContainer<S>
    implements Emulator {
  private final String store;
  private final int port;
  private final List<String> options = new ArrayList<>();

  EmulatorContainer(DockerImageName image, String store, int port) {
    super(image);
    this.store = store;
    this.port = port;
    withExposedPorts(port);
    waitingFor(Wait.forHttp("/_emulator/stats").forPort(port));
  }

  /** Adds options of {@code asynccommit emulate}, such as {@code "--latency", "20ms"}. */
  public S withOptions(String... more) {
    options.addAll(List.of(more));
    return self();
  }

  S withEach(String option, String... values) {
    for (String value : values) {
      withOptions(option, value);
    }
    return self();
  }

  @Override
  public String getEndpoint() {
    return "http://" + getHost() + ":" + getMappedPort(port);
  }

  @Override
  protected void configure() {
    List<String> command = new ArrayList<>(List.of("emulate", store, "--address", "0.0.0.0"));
    command.addAll(List.of("--port", String.valueOf(port), "--quiet"));
    command.addAll(options);
    setCommandParts(command.toArray(new String[0]));
  }
}
