package org.asynccommit.testing;

import org.testcontainers.utility.DockerImageName;

/** Runs {@code asynccommit emulate adls} in a container. */
public class AdlsContainer extends EmulatorContainer<AdlsContainer> implements AdlsEmulator {
  public AdlsContainer(String image) {
    this(DockerImageName.parse(image));
  }

  public AdlsContainer(DockerImageName image) {
    super(image, "adls", 10004);
  }

  /** Creates filesystems at the start and at each reset. */
  public AdlsContainer withFilesystems(String... names) {
    return withEach("--filesystem", names);
  }
}
