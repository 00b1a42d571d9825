package org.asynccommit.spark;

import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.OutputCommitter;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.spark.internal.io.FileCommitProtocol.TaskCommitMessage;
import org.apache.spark.internal.io.FileNameSpec;
import org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol;
import org.apache.spark.unsafe.Platform;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Spark's commit protocol with tasks that write manifests, or upload where nothing can be renamed,
 * and a job commit in Python.
 *
 * <p>Set by {@code spark.sql.sources.commitProtocolClass}. One instance lives in the driver, copies
 * of it in the tasks. For a scheme that Python has no store for it is Spark's own protocol.
 */
public class AsyncCommitProtocol extends SQLHadoopMapReduceCommitProtocol {
  /** An executor with the jar of another version loads no object of this one. */
  private static final long serialVersionUID = @SERIAL@;

  /** Read by Python, which uses no jar of another version. */
  public static final String BUILD = Keys.BUILD;

  private static final Logger LOG = LoggerFactory.getLogger(AsyncCommitProtocol.class);

  private final String jobId;
  private final String path;
  private final boolean dynamic;
  private Boolean ours = null; // decided in the driver, goes to the tasks with this object
  private transient TaskSide taskSide;
  private transient JobSide jobSide;
  private transient boolean alone; // no job had anything there when this was made
  private transient Set overwrite;
  private transient List delegated; // what Spark wants deleted: a filesystem and a path each

  public AsyncCommitProtocol(String jobId, String path, boolean dynamicPartitionOverwrite) {
    super(jobId, path, dynamicPartitionOverwrite);
    this.jobId = jobId;
    this.path = path;
    this.dynamic = dynamicPartitionOverwrite;
    // Only the driver makes one, and before Spark asks what is there.
    this.alone = path != null && Leftovers.clear(path, jobId);
  }

  /**
   * Called where a task gets this object: an executor may have another Spark than the driver. Janino
   * makes private methods static, so {@code readObject} would not be called.
   */
  protected Object readResolve() throws IOException {
    Signatures.require();
    return this;
  }

  /** Called on both sides, from setupJob and setupTask of the superclass. */
  public OutputCommitter setupCommitter(TaskAttemptContext context) {
    if (!isOurs()) {
      return super.setupCommitter(context);
    }
    try {
      Configuration conf = context.getConfiguration();
      conf.set(Keys.JOB_UUID, jobId);
      FileSystem fs = new Path(path).getFileSystem(conf);
      int attempt = conf.getInt("mapreduce.job.application.attempt.id", 0);
      Path dest = fs.makeQualified(new Path(path));
      taskSide =
          isUploads(dest)
              ? (TaskSide) UploadTask.of(dest, attempt, context)
              : (TaskSide) new ManifestTask(new Layout(dest, jobId, attempt), fs, conf);
    } catch (IOException e) {
      Platform.throwException(e);
    }
    return taskSide;
  }

  public void setupJob(JobContext context) {
    try {
      decide(path == null ? null : new Path(path).getFileSystem(context.getConfiguration()));
      refuseForgottenKey(Keys.jobKey(context.getConfiguration()));
      Engine engine = isOurs() ? Engine.forJob() : null; // before anything is made
      deleteDelegated();
      super.setupJob(context);
      if (isOurs()) {
        Configuration conf = context.getConfiguration();
        FileSystem fs = new Path(path).getFileSystem(conf);
        jobSide =
            taskSide instanceof UploadTask
                ? (JobSide) new UploadJob((UploadTask) taskSide, engine, fs, conf)
                : (JobSide) new ManifestJob(taskSide.layout, engine, fs, conf, alone);
        jobSide.setup(overwritten(), dynamic, conf);
      }
    } catch (IOException e) {
      Platform.throwException(
          Driver.refusal(
              "asynccommit: job " + jobId + " cannot be set up in " + path + ": " + e.getMessage()));
    } catch (Exception e) {
      Platform.throwException(e);
    }
  }

  /** Called before setupJob, for each directory that an overwrite replaces. */
  public boolean deleteWithJob(FileSystem fs, Path target, boolean recursive) {
    try {
      decide(fs);
    } catch (Exception e) {
      Platform.throwException(e);
    }
    if (!isOurs()) { // the job may be refused yet: what its options say is known in setupJob only
      delegated = delegated == null ? new ArrayList() : delegated;
      delegated.add(new Object[] {fs, target, Boolean.valueOf(recursive)});
      return true;
    }
    overwritten().add(fs.makeQualified(target).toUri().toString());
    return true;
  }

  private void deleteDelegated() throws IOException {
    for (int i = 0; delegated != null && i < delegated.size(); i++) {
      Object[] one = (Object[]) delegated.get(i);
      Path target = (Path) one[1];
      if (!super.deleteWithJob((FileSystem) one[0], target, ((Boolean) one[2]).booleanValue())) {
        throw new IOException("Unable to clear output directory " + target);
      }
    }
    delegated = null;
  }

  /** Refuses a job key where nothing would remember it: it promises that nothing is done twice. */
  private void refuseForgottenKey(String key) throws Exception {
    if (key == null) {
      return;
    }
    if (!isOurs()) {
      throw Driver.refusal(
          "asynccommit: " + Keys.JOB_KEY + " is '" + key + "', but there is no store for " + path
              + ", so nothing there would tell a second run that it is done: unset "
              + Keys.JOB_KEY + " for this write. Nothing was written");
    }
    if (Layout.isHiveStaging(new Path(path))) {
      throw Driver.refusal(
          "asynccommit: " + Keys.JOB_KEY + " is '" + key + "', but Hive moves what is written to "
              + path + " on and drops the marker that would tell a second run that it is done: unset "
              + Keys.JOB_KEY + " for this write, or write a table of a Spark source (USING parquet)."
              + " Nothing was written");
    }
  }

  private Set overwritten() {
    if (overwrite == null) {
      overwrite = new LinkedHashSet();
    }
    return overwrite;
  }

  public String newTaskTempFile(TaskAttemptContext context, scala.Option dir, FileNameSpec spec) {
    if (!isOurs()) {
      return super.newTaskTempFile(context, dir, spec);
    }
    String directory = dir.isDefined() ? (String) dir.get() : null;
    return taskSide.tempFile(context, directory, getFilename(context, spec));
  }

  public String newTaskTempFileAbsPath(TaskAttemptContext context, String dir, FileNameSpec spec) {
    if (!isOurs()) {
      return super.newTaskTempFileAbsPath(context, dir, spec);
    }
    try {
      return taskSide.stagedFile(context, new Path(dir, getFilename(context, spec)));
    } catch (IOException e) {
      Platform.throwException(e);
      return null;
    }
  }

  public TaskCommitMessage commitTask(TaskAttemptContext context) {
    TaskCommitMessage message = super.commitTask(context); // asks Spark's coordinator, then us
    return isOurs() ? new TaskCommitMessage(taskSide.message()) : message;
  }

  public void abortTask(TaskAttemptContext context) {
    if (!isOurs()) {
      super.abortTask(context);
    } else if (taskSide != null) {
      try {
        taskSide.abortTask(context);
      } catch (IOException e) {
        LOG.warn("Aborting {} left something behind", context.getTaskAttemptID(), e);
      }
    }
  }

  public void onTaskCommit(TaskCommitMessage message) {}

  public void commitJob(JobContext context, @SEQ@ messages) {
    if (!isOurs()) {
      super.commitJob(context, messages);
      return;
    }
    List tasks = new ArrayList();
    scala.collection.Iterator each = messages.iterator();
    while (each.hasNext()) {
      Object message = ((TaskCommitMessage) each.next()).obj();
      if (message != null) {
        tasks.add(message);
      }
    }
    try {
      jobSide.commit(tasks, overwritten(), dynamic, context.getConfiguration());
    } catch (Exception e) {
      Platform.throwException(e);
    }
  }

  public void abortJob(JobContext context) {
    if (!isOurs()) {
      super.abortJob(context);
    } else if (jobSide != null) {
      try {
        jobSide.abort();
      } catch (IOException e) {
        LOG.warn("Aborting job {} left something behind", jobId, e);
      }
    }
  }

  /** Whether nothing can be renamed there, so that tasks upload and the job completes. */
  private static boolean isUploads(Path dest) {
    String scheme = dest.toUri().getScheme();
    return "s3a".equals(scheme) || "s3".equals(scheme);
  }

  private boolean isOurs() {
    return ours != null && ours.booleanValue();
  }

  private void decide(FileSystem fs) throws Exception {
    if (ours == null) {
      ours = Boolean.valueOf(Support.decide(fs, path));
    }
  }
}
