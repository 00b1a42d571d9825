package org.asynccommit.spark;

import java.io.IOException;
import java.util.regex.Pattern;
import org.apache.hadoop.fs.Path;

/**
 * Every path that one attempt of a job has under its destination; the same as in job.py.
 *
 * <p>{@code alive} is a directory that only job setup makes, so its absence tells a straggling task
 * attempt that the job has ended. Creating a file makes its missing parents, but never this one. Of
 * jobs whose tasks upload it is a file, which Python writes before any task runs. If the job has made
 * its destination, {@code madeDest} in it tells whoever aborts the job.
 */
final class Layout {
  /** As Spark's writer for Hive and Hive itself call the directories from which Hive moves on. */
  private static final Pattern HIVE_STAGING =
      Pattern.compile("(^|.*_)hive_\\d{4}-\\d\\d-\\d\\d_\\d\\d-\\d\\d-\\d\\d_\\d+_.*");

  final String jobId;
  final int attempt;
  final Path dest;
  final Path temporary;
  final Path jobDir;
  final Path attemptDir;
  final Path alive;
  final Path madeDest;
  final Path manifests;
  final Path tasks;
  final Path absolute;
  final Path record;

  /** Whether tasks upload: then the directories of the magic committer are reserved, too. */
  private final boolean uploads;

  /** @param dest the destination, qualified by its filesystem */
  Layout(Path dest, String jobId, int attempt) {
    this(dest, jobId, attempt, new Path(new Path(dest, "_temporary"), jobId));
  }

  private Layout(Path dest, String jobId, int attempt, Path jobDir) {
    this(
        dest, jobId, attempt, jobDir, new Path(jobDir, (attempt < 10 ? "0" : "") + attempt), "",
        false);
  }

  private Layout(
      Path dest, String jobId, int attempt, Path jobDir, Path attemptDir, String hidden,
      boolean uploads) {
    this.uploads = uploads;
    this.jobId = jobId;
    this.attempt = attempt;
    this.dest = dest;
    this.jobDir = jobDir;
    this.attemptDir = attemptDir;
    temporary = new Path(dest, "_temporary");
    alive = new Path(attemptDir, hidden + "alive");
    madeDest = new Path(alive, "made-destination");
    manifests = new Path(attemptDir, "manifests");
    tasks = new Path(attemptDir, "tasks");
    absolute = new Path(attemptDir, "absolute");
    record = new Path(attemptDir, hidden + "commit-record.json");
  }

  /**
   * Returns the layout of a job whose tasks leave sets of uploads.
   *
   * @param sets the directory of the sets
   * @param hidden what stands before names that are no sets
   */
  static Layout ofUploads(Path dest, String jobId, int attempt, Path sets, String hidden) {
    return new Layout(dest, jobId, attempt, sets, sets, hidden, true);
  }

  /** Whether Hive will move what is written there to the table, and delete the directory. */
  static boolean isHiveStaging(Path dest) {
    for (Path at = dest; at != null; at = at.getParent()) {
      if (HIVE_STAGING.matcher(at.getName()).matches()) {
        return true;
      }
    }
    return false;
  }

  /** Refuses a path that no job commit could publish: the task that wrote the file fails. */
  void refuseReserved(Path path) throws IOException {
    String top = dest.toUri().getPath();
    top = top.endsWith("/") ? top : top + "/";
    String name = path.toUri().getPath();
    if (!name.startsWith(top) || isReserved(name.substring(top.length()).split("/"))) {
      throw reserved(path);
    }
  }

  /** Refuses the same by its name below the destination. */
  void refuseReserved(String name) throws IOException {
    if ((uploads || name.startsWith("_")) && isReserved(name.split("/"))) {
      throw reserved(ManifestFile.below(dest, name));
    }
  }

  private static IOException reserved(Path path) {
    return new IOException(
        "asynccommit: the task cannot publish " + path + ", which belongs to the commit protocol:"
            + " give the file another name, or delete it");
  }

  private boolean isReserved(String[] parts) {
    if ("_SUCCESS".equals(parts[0]) || "_temporary".equals(parts[0])) {
      return true;
    }
    for (int i = 0; uploads && i < parts.length; i++) {
      if (parts[i].startsWith("__magic")) {
        return true;
      }
    }
    return false;
  }

  /** Refuses a name that listings of Hadoop's local filesystem leave out, in any part of it. */
  static void refuseUnlisted(String name) {
    String[] parts = name.split("/");
    for (int i = 0; i < parts.length; i++) {
      if (parts[i].startsWith(".") && parts[i].endsWith(".crc")) {
        throw new IllegalArgumentException(
            "asynccommit: " + name + " would not be committed, for Hadoop takes " + parts[i]
                + " for a checksum and does not list it: choose another name");
      }
    }
  }

  Path taskAttempt(String attemptId) {
    return new Path(tasks, attemptId);
  }

  Path stagedFor(String attemptId) {
    return new Path(absolute, attemptId);
  }

  Path manifest(String taskId) {
    return new Path(manifests, taskId + "-manifest.json");
  }

  Path manifestTemp(String attemptId) {
    return new Path(manifests, attemptId + "-manifest.json.tmp");
  }

  Path success() {
    return new Path(dest, "_SUCCESS");
  }
}
