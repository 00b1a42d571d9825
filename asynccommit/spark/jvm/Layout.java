package org.asynccommit.spark;

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

  /** @param dest the destination, qualified by its filesystem */
  Layout(Path dest, String jobId, int attempt) {
    this(dest, jobId, attempt, new Path(new Path(dest, "_temporary"), jobId), "");
  }

  private Layout(Path dest, String jobId, int attempt, Path jobDir, String hidden) {
    this(
        dest, jobId, attempt, jobDir, new Path(jobDir, (attempt < 10 ? "0" : "") + attempt), hidden);
  }

  private Layout(
      Path dest, String jobId, int attempt, Path jobDir, Path attemptDir, String hidden) {
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
    return new Layout(dest, jobId, attempt, sets, sets, hidden);
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
