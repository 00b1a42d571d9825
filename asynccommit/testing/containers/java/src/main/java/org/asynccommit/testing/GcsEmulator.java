package org.asynccommit.testing;

import java.util.Map;

/** An emulated Google Cloud Storage, which asks for no credentials. */
public interface GcsEmulator extends Emulator {
  /**
   * Returns the options of Google's connector for {@code gs://} URLs; for Spark, put {@code
   * spark.hadoop.} before each name.
   */
  default Map<String, String> getHadoopOptions() {
    return Map.of(
        "fs.gs.impl", "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
        "fs.AbstractFileSystem.gs.impl", "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFS",
        "fs.gs.storage.root.url", getEndpoint(),
        "fs.gs.auth.type", "UNAUTHENTICATED",
        "fs.gs.project.id", "emulated",
        "fs.gs.block.size", "67108864",
        "fs.gs.hierarchical.namespace.folders.enable", "false");
  }
}
