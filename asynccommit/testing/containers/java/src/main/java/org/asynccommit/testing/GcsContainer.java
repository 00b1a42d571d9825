package org.asynccommit.testing;

import java.util.ArrayList;
import java.util.List;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;
import org.testcontainers.utility.DockerImageName;

/** Runs {@code asynccommit emulate gcs} in a container of the image that Containerfile builds. */
public class GcsContainer extends GenericContainer<GcsContainer> implements GcsEmulator {
  private static final int PORT = 4443;
  private final List<String> options = new ArrayList<>();

  public GcsContainer(String image) {
    this(DockerImageName.parse(image));
  }

  public GcsContainer(DockerImageName image) {
    super(image);
    withExposedPorts(PORT);
    waitingFor(Wait.forHttp("/_emulator/stats").forPort(PORT));
  }

  /** Creates buckets at the start and at each reset. */
  public GcsContainer withBuckets(String... names) {
    for (String name : names) {
      withOptions("--bucket", name);
    }
    return this;
  }

  /** Adds options of {@code asynccommit emulate gcs}, such as {@code "--latency", "20ms"}. */
  public GcsContainer withOptions(String... more) {
    options.addAll(List.of(more));
    return this;
  }

  @Override
  public String getEndpoint() {
    return "http://" + getHost() + ":" + getMappedPort(PORT);
  }

  @Override
  protected void configure() {
    List<String> command = new ArrayList<>(List.of("emulate", "gcs", "--address", "0.0.0.0"));
    command.addAll(List.of("--port", String.valueOf(PORT), "--quiet"));
    command.addAll(options);
    setCommandParts(command.toArray(new String[0]));
  }
}
