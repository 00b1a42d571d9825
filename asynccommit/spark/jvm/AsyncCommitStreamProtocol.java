package org.asynccommit.spark;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.Future;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.spark.TaskContext;
import org.apache.spark.internal.io.FileCommitProtocol.TaskCommitMessage;
import org.apache.spark.internal.io.FileNameSpec;
import org.apache.spark.sql.execution.streaming.ManifestFileCommitProtocol;
import org.apache.spark.unsafe.Platform;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Spark's protocol for the batches of its own file sink, whose files can be told from all others.
 *
 * <p>Set by {@code spark.sql.streaming.commitProtocolClass}. Names and log are those of Spark's: what
 * is new is that the first half of the id in the names is a token of this run of the batch, which is
 * announced beside the log before there are files. So what a killed run has left is found by its
 * names. One instance lives in the driver for each run of a batch, copies of it in the tasks.
 */
public class AsyncCommitStreamProtocol extends ManifestFileCommitProtocol {
  private static final long serialVersionUID = @SERIAL@;
  private static final Logger LOG = LoggerFactory.getLogger(AsyncCommitStreamProtocol.class);
  private static final String FIRST = "8"; // what a second attempt's names have instead is 9

  private final String path;
  private final long batch;
  private String token = null; // null for Spark's own way; decided in the driver
  private String announcement = null;
  private transient List added; // the files of a task
  private transient StreamBatch run;
  private transient List written; // what tasks have reported to the driver
  private transient long bytes; // of these
  private transient boolean again; // some task had more than one attempt
  private transient boolean sent; // the batch may be in the log
  private transient @SINK@.FileStreamSinkLog log;

  public AsyncCommitStreamProtocol(String jobId, String path) {
    super(jobId, path);
    this.path = path;
    this.batch = Long.parseLong(jobId);
  }

  /** Called where a task gets this object; see {@link AsyncCommitProtocol}. */
  protected Object readResolve() throws IOException {
    Signatures.require();
    return this;
  }

  public void setupJob(JobContext context) {
    try {
      Path dest = new Path(path);
      FileSystem fs = dest.getFileSystem(context.getConfiguration());
      if (Support.decide(fs, path)) {
        run = new StreamBatch(fs.makeQualified(dest), batch, context.getConfiguration());
        written = new ArrayList();
        Announcement announced = run.begin();
        announcement = announced.path.toString();
        token = announced.token;
      }
      super.setupJob(context);
    } catch (Exception e) {
      Platform.throwException(e);
    }
  }

  public void setupManifestOptions(@SINK@.FileStreamSinkLog log, long batch) {
    super.setupManifestOptions(log, batch);
    this.log = log;
  }

  public void setupTask(TaskAttemptContext context) {
    super.setupTask(context);
    added = new ArrayList();
  }

  public String newTaskTempFile(TaskAttemptContext context, scala.Option dir, FileNameSpec spec) {
    return token == null ? super.newTaskTempFile(context, dir, spec) : file(context, dir, spec.suffix());
  }

  /** Called by Spark before 4.1 for a file that is in no partition. */
  public String newTaskTempFile(TaskAttemptContext context, scala.Option dir, String suffix) {
    return token == null ? super.newTaskTempFile(context, dir, suffix) : file(context, dir, suffix);
  }

  private String file(TaskAttemptContext context, scala.Option dir, String suffix) {
    String split = String.valueOf(context.getTaskAttemptID().getTaskID().getId());
    while (split.length() < 5) {
      split = "0" + split;
    }
    String rest = UUID.randomUUID().toString().substring(20);
    String name =
        "part-" + split + "-" + token + "-" + (isFirst() ? FIRST : "9") + rest + suffix;
    Path parent = dir.isDefined() ? new Path(path, (String) dir.get()) : new Path(path);
    Path file = new Path(parent, name);
    added.add(file);
    return file.toString();
  }

  private static boolean isFirst() {
    TaskContext task = TaskContext.get();
    return task == null || (task.attemptNumber() == 0 && task.stageAttemptNumber() == 0);
  }

  public TaskCommitMessage commitTask(TaskAttemptContext context) {
    if (token == null) {
      return super.commitTask(context);
    }
    scala.collection.immutable.List statuses = scala.collection.immutable.Nil$.MODULE$;
    try {
      FileSystem fs = new Path(path).getFileSystem(context.getConfiguration());
      Future[] asked = new Future[added.size()];
      Future said = asked.length == 0 ? null : status(fs, new Path(announcement));
      for (int i = 0; i < asked.length; i++) {
        asked[i] = status(fs, (Path) added.get(i));
      }
      for (int i = asked.length - 1; i >= 0; i--) { // Janino cannot call += of Scala 2.12's buffers
        FileStatus found = (FileStatus) Listings.wait(asked[i]);
        statuses = statuses.$colon$colon(@SINK@.SinkFileStatus.apply(found));
      }
      if (said != null) {
        requireAnnouncement(said);
      }
    } catch (IOException e) { // Spark then aborts the task
      Platform.throwException(e);
    }
    return new TaskCommitMessage(statuses);
  }

  /** Refuses a task that has outlived its batch: whoever took the announcement has looked already. */
  private void requireAnnouncement(Future said) throws IOException {
    try {
      Listings.wait(said);
    } catch (FileNotFoundException e) {
      throw new IOException(
          "asynccommit: this run of batch " + batch + " of " + path + " has ended, and a later one"
              + " deletes what it has left: the files of this task are deleted");
    }
  }

  private static Future status(final FileSystem fs, final Path file) {
    return Listings.submit(
        new Callable() {
          public Object call() throws IOException {
            return fs.getFileStatus(file);
          }
        });
  }

  public void abortTask(TaskAttemptContext context) {
    if (token == null) {
      super.abortTask(context);
      return;
    }
    try {
      final FileSystem fs = new Path(path).getFileSystem(context.getConfiguration());
      List deleted = new ArrayList();
      for (int i = 0; i < added.size(); i++) {
        final Path file = (Path) added.get(i);
        deleted.add(
            Listings.submit(
                new Callable() {
                  public Object call() throws IOException {
                    return Boolean.valueOf(fs.delete(file, false));
                  }
                }));
      }
      for (int i = 0; i < deleted.size(); i++) {
        Listings.wait((Future) deleted.get(i));
      }
    } catch (IOException e) {
      LOG.warn("Aborting {} left something behind", context.getTaskAttemptID(), e);
    }
  }

  public void onTaskCommit(TaskCommitMessage message) {
    super.onTaskCommit(message);
    if (token != null) {
      note(message);
    }
  }

  private void note(TaskCommitMessage message) {
    scala.collection.Iterator each = ((scala.collection.Seq) message.obj()).iterator();
    while (each.hasNext()) {
      @SINK@.SinkFileStatus status = (@SINK@.SinkFileStatus) each.next();
      String file = status.path();
      written.add(file);
      bytes += status.size();
      again |= !file.substring(file.lastIndexOf('/')).contains(token + "-" + FIRST);
    }
  }

  public void commitJob(JobContext context, @SEQ@ messages) {
    sent = true;
    if (token == null) {
      super.commitJob(context, messages);
      return;
    }
    Compaction compaction = null;
    try {
      FileSystem fs = new Path(path).getFileSystem(context.getConfiguration());
      compaction = Compaction.of(log, fs, batch);
    } catch (IOException e) { // Spark says what it is about
      LOG.debug("The log of {} is compacted by Spark", path, e);
    }
    if (compaction == null) {
      super.commitJob(context, messages);
    } else if (!compaction.add(batch, statuses(messages))) {
      throw new IllegalStateException("another query has added batch " + batch + " of " + path);
    }
    run.end(written, bytes, again);
  }

  private static @SINK@.SinkFileStatus[] statuses(@SEQ@ messages) {
    List found = new ArrayList();
    for (scala.collection.Iterator each = messages.iterator(); each.hasNext(); ) {
      Object files = ((TaskCommitMessage) each.next()).obj();
      scala.collection.Iterator file = ((scala.collection.Seq) files).iterator();
      while (file.hasNext()) {
        found.add(file.next());
      }
    }
    @SINK@.SinkFileStatus[] all = new @SINK@.SinkFileStatus[found.size()];
    for (int i = 0; i < all.length; i++) {
      all[i] = (@SINK@.SinkFileStatus) found.get(i);
    }
    return all;
  }

  public void abortJob(JobContext context) {
    if (token == null) {
      super.abortJob(context);
    } else {
      run.abort(written, sent);
    }
  }
}
