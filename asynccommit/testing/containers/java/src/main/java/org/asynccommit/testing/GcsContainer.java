package org.asynccommit.testing;

import org.testcontainers.utility.DockerImageName;

/** Runs {@code asynccommit emulate gcs} in a container. */
public class GcsContainer extends EmulatorContainer<GcsContainer> implements GcsEmulator {
  public GcsContainer(String image) {
    this(DockerImageName.parse(image));
  }

  public GcsContainer(DockerImageName image) {
    super(image, "gcs", 4443);
  }

  /** Creates buckets at the start and at each reset. */
  public GcsContainer withBuckets(String... names) {
    return withEach("--bucket", names);
  }
}
