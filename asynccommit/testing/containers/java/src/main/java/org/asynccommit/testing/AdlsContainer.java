package org.asynccommit.testing;

import java.util.ArrayList;
import java.util.List;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;
import org.testcontainers.utility.DockerImageName;

/** Runs {@code asynccommit emulate adls} in a container of the image that Containerfile builds. */
public class AdlsContainer extends GenericContainer<AdlsContainer> implements AdlsEmulator {
  private static final int PORT = 10004;
  private final List<String> options = new ArrayList<>();

  public AdlsContainer(String image) {
    this(DockerImageName.parse(image));
  }

  public AdlsContainer(DockerImageName image) {
    super(image);
    withExposedPorts(PORT);
    waitingFor(Wait.forHttp("/_emulator/stats").forPort(PORT));
  }

  /** Creates filesystems at the start and at each reset. */
  public AdlsContainer withFilesystems(String... names) {
    for (String name : names) {
      withOptions("--filesystem", name);
    }
    return this;
  }

  /** Adds options of {@code asynccommit emulate adls}, such as {@code "--latency", "20ms"}. */
  public AdlsContainer withOptions(String... more) {
    options.addAll(List.of(more));
    return this;
  }

  @Override
  public String getEndpoint() {
    return "http://" + getHost() + ":" + getMappedPort(PORT);
  }

  @Override
  protected void configure() {
    List<String> command = new ArrayList<>(List.of("emulate", "adls", "--address", "0.0.0.0"));
    command.addAll(List.of("--port", String.valueOf(PORT), "--quiet"));
    command.addAll(options);
    setCommandParts(command.toArray(new String[0]));
  }
}
