package org.asynccommit.spark;

import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskCompletionListener;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Task setup, commit and abort of the manifest committer protocol.
 *
 * <p>A task attempt writes into its own directory; its commit lists that directory into a manifest
 * and moves no file. An attempt can outlive its job (a killed task, the loser of a speculation), and
 * what it writes then re-creates the job's directory. So the last action of each step is to look
 * for the job's {@code alive} marker; without it, the attempt removes what it made. Over a network
 * the look of the setup is read by the commit only.
 */
final class ManifestTask extends TaskSide {
  private static final Logger LOG = LoggerFactory.getLogger(ManifestTask.class);

  private final Disk disk;
  private final boolean jobMadeDest;
  private final Map absolute = new LinkedHashMap();
  private final Set partitions = new LinkedHashSet();
  private Map message = null;
  private Future alive = null;

  ManifestTask(Layout layout, FileSystem fs, Configuration conf) {
    super(layout);
    this.disk = new Disk(fs, conf);
    this.jobMadeDest = conf.getBoolean(Keys.MADE_DESTINATION, false);
  }

  String tempFile(TaskAttemptContext context, String directory, String name) {
    if (disk.local) {
      Layout.refuseUnlisted(directory == null ? name : directory + "/" + name);
    }
    Path base = layout.taskAttempt(attemptId(context));
    if (directory == null) {
      return new Path(base, name).toString();
    }
    partitions.add(directory);
    return new Path(new Path(base, directory), name).toString();
  }

  String stagedFile(TaskAttemptContext context, Path dest) throws IOException {
    String name = absolute.size() + "-" + dest.getName();
    Path staged = new Path(layout.stagedFor(attemptId(context)), name);
    FileSystem there = dest.getFileSystem(context.getConfiguration());
    absolute.put(text(staged), there.makeQualified(dest).toUri().toString());
    return staged.toString();
  }

  Map message() {
    return message;
  }

  public void setupJob(JobContext context) {}

  public boolean needsTaskCommit(TaskAttemptContext context) {
    return true;
  }

  public void setupTask(TaskAttemptContext context) throws IOException {
    if (TaskContext.get() != null) {
      TaskContext.get().addTaskCompletionListener(new AtEnd(context));
    }
    if (!disk.objects) {
      disk.mkdirNew(layout.taskAttempt(attemptId(context)));
    }
    if (disk.local) {
      requireLiveJob(context);
    } else { // over a network the task begins to write meanwhile
      alive = disk.look(layout.alive);
    }
  }

  public void commitTask(TaskAttemptContext context) throws IOException {
    String taskId = taskId(context);
    String attemptId = attemptId(context);
    Future there = disk.local || disk.objects ? null : disk.look(layout.manifest(taskId));
    if (alive != null && Listings.wait(alive) == null) {
      refuseEnded(context);
    }
    ManifestFile manifest = new ManifestFile(disk, layout);
    manifest.scan(layout.taskAttempt(attemptId), partitions);
    byte[] data = manifest.encode(taskId, attemptId);
    save(data, taskId, attemptId, there);
    requireLiveJob(context);
    message = new LinkedHashMap();
    message.put("taskId", taskId);
    message.put("attemptId", attemptId);
    message.put("manifest", text(layout.manifest(taskId)));
    message.put("digest", ManifestFile.digest(data));
    message.put("files", Integer.valueOf(manifest.files()));
    message.put("bytes", Long.valueOf(manifest.bytes()));
    message.put("absolute", new LinkedHashMap(absolute));
    message.put("partitions", new ArrayList(partitions));
  }

  public void abortTask(TaskAttemptContext context) throws IOException {
    if (!disk.exists(layout.record)) { // from then on the job commit cleans up
      deleteOwn(context);
    }
    if (!disk.exists(layout.alive)) {
      sweep(context);
    }
  }

  /**
   * Aborts a task attempt that ended neither committed nor aborted: Spark asks for no abort when the
   * setup fails or the first file cannot be opened, as when the task is killed meanwhile.
   */
  private final class AtEnd implements TaskCompletionListener {
    private final TaskAttemptContext context;

    AtEnd(TaskAttemptContext context) {
      this.context = context;
    }

    public void onTaskCompletion(TaskContext task) {
      boolean interrupted = Thread.interrupted(); // it would fail what is done here
      try {
        if (message == null) {
          abortTask(context);
        }
      } catch (IOException e) {
        LOG.warn("{} left something behind", context.getTaskAttemptID(), e);
      } finally {
        if (interrupted) {
          Thread.currentThread().interrupt();
        }
      }
    }
  }

  private void save(byte[] data, String taskId, String attemptId, Future there)
      throws IOException {
    Path temp = layout.manifestTemp(attemptId);
    Path manifest = layout.manifest(taskId);
    for (int i = 1; ; i++) {
      try {
        if (there != null && i == 1) { // another attempt may be there since: then it is looked again
          disk.save(data, temp, manifest, (FileStatus) Listings.wait(there));
        } else {
          disk.save(data, temp, manifest);
        }
        return;
      } catch (IOException e) {
        if (i >= Disk.TRIES || !disk.exists(layout.manifests)) { // gone once the commit has begun
          throw e;
        }
        LOG.warn("saving the manifest of {} failed, try {} of {}", attemptId, i, Disk.TRIES, e);
        disk.pause(2 * i);
      }
    }
  }

  private void requireLiveJob(TaskAttemptContext context) throws IOException {
    if (!disk.exists(layout.alive)) {
      refuseEnded(context);
    }
  }

  private void refuseEnded(TaskAttemptContext context) throws IOException {
    sweep(context);
    throw new IOException("job " + layout.jobId + " has ended before " + attemptId(context));
  }

  /** Removes what this attempt made after the job's directory had gone. */
  private void sweep(TaskAttemptContext context) throws IOException {
    if (disk.exists(layout.record)) {
      return;
    }
    deleteOwn(context);
    disk.removeEmpty(layout, jobMadeDest);
  }

  private void deleteOwn(TaskAttemptContext context) throws IOException {
    String attemptId = attemptId(context);
    disk.fs.delete(layout.taskAttempt(attemptId), true);
    disk.fs.delete(layout.stagedFor(attemptId), true);
    disk.fs.delete(layout.manifestTemp(attemptId), false);
    Path manifest = layout.manifest(taskId(context));
    byte[] data = disk.read(manifest);
    if (data != null && attemptId.equals(ManifestFile.attemptOf(data))) {
      disk.fs.delete(manifest, false);
    }
  }

  private String text(Path path) {
    return disk.fs.makeQualified(path).toUri().toString();
  }
}
