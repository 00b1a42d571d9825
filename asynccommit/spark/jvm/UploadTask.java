package org.asynccommit.spark;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BBUploadHandle;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.MultipartUploader;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.JobStatus;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.lib.output.PathOutputCommitter;
import org.apache.hadoop.mapreduce.lib.output.PathOutputCommitterFactory;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;

/**
 * Tasks of Hadoop's own committers for S3: they upload, and leave a set of pending uploads each.
 *
 * <p>The committers are of a module that PySpark does not bring, so what only they have is asked for
 * by name.
 */
final class UploadTask extends TaskSide {
  private static final String NAME = "fs.s3a.committer.name";

  /** Hadoop would abort every upload under the destination, other jobs' too. */
  private static final String ABORT_ALL = "fs.s3a.committer.abort.pending.uploads";

  private static final String MARK = "mapreduce.fileoutputcommitter.marksuccessfuljobs";

  final PathOutputCommitter hadoop;
  private final Path set;

  /** Whether tasks write to the store; else they stage their files on a local disk. */
  private final boolean magic;

  private final Disk disk;
  private final Configuration conf;
  private final Set partitions = new LinkedHashSet();
  private Map message = null;
  private JobContext job = null;

  private UploadTask(
      Layout layout, PathOutputCommitter hadoop, Path set, boolean magic, Configuration conf)
      throws IOException {
    super(layout);
    this.hadoop = hadoop;
    this.set = set;
    this.magic = magic;
    this.disk = new Disk(set.getFileSystem(conf), conf);
    this.conf = conf;
  }

  /** @param dest the destination, qualified by its filesystem */
  static UploadTask of(Path dest, int attempt, TaskAttemptContext context)
      throws IOException {
    Configuration conf = new Configuration(context.getConfiguration());
    if ("file".equals(conf.getTrimmed(NAME, "file"))) {
      conf.set(NAME, "magic");
    }
    conf.setBoolean(ABORT_ALL, false);
    conf.setBoolean(MARK, false); // its setup would delete the marker of what is there
    TaskAttemptContext own = new TaskAttemptContextImpl(conf, context.getTaskAttemptID());
    PathOutputCommitter hadoop = PathOutputCommitterFactory.createCommitter(dest, own);
    boolean magic = "magic".equals(nameOf(hadoop));
    Path set =
        magic
            ? new Path(
                (Path) ask(hadoop, "getJobAttemptPath", JobContext.class, own),
                taskId(context) + ".pendingset")
            : (Path) ask(hadoop, "getCommittedTaskPath", TaskAttemptContext.class, own);
    String uuid = String.valueOf(ask(hadoop, "getUUID", null, null));
    Layout layout = Layout.ofUploads(dest, uuid, attempt, set.getParent(), magic ? "" : "_");
    return new UploadTask(layout, hadoop, set, magic, conf);
  }

  /** Returns the name of one of Hadoop's committers for S3. Throws for any other. */
  static String nameOf(PathOutputCommitter hadoop) throws IOException {
    return String.valueOf(ask(hadoop, "getName", null, null));
  }

  private static Object ask(PathOutputCommitter hadoop, String method, Class type, Object argument)
      throws IOException {
    try {
      return type == null
          ? hadoop.getClass().getMethod(method, new Class[0]).invoke(hadoop, new Object[0])
          : hadoop.getClass().getMethod(method, new Class[] {type})
              .invoke(hadoop, new Object[] {argument});
    } catch (NoSuchMethodException e) {
      throw new IOException(
          hadoop.getClass().getName() + " leaves no sets of pending uploads: set " + NAME
              + " to magic, directory or partitioned", e);
    } catch (IllegalAccessException e) {
      throw new IOException(hadoop.getClass().getName() + " cannot be asked for " + method, e);
    } catch (InvocationTargetException e) {
      throw new IOException(hadoop.getClass().getName() + " does not tell " + method, e);
    }
  }

  String tempFile(TaskAttemptContext context, String directory, String name) {
    if (!magic) {
      Layout.refuseUnlisted(directory == null ? name : directory + "/" + name);
    }
    try {
      Path base = hadoop.getWorkPath();
      if (directory == null) {
        return new Path(base, name).toString();
      }
      partitions.add(directory);
      return new Path(new Path(base, directory), name).toString();
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  String stagedFile(TaskAttemptContext context, Path dest) throws IOException {
    throw new IOException(
        "asynccommit: " + dest + " is outside of " + layout.dest + ", and uploads cannot be renamed:"
            + " a table whose partitions have locations of their own is not written on S3");
  }

  Map message() {
    return message;
  }

  public void setupJob(JobContext context) throws IOException {
    job = context;
    hadoop.setupJob(context);
  }

  /** Deletes what setupJob has made; there are no uploads yet. */
  void undoSetup() throws IOException {
    hadoop.abortJob(job, JobStatus.State.FAILED);
  }

  public void setupTask(TaskAttemptContext context) throws IOException {
    requireLiveJob(context);
    hadoop.setupTask(context);
  }

  public boolean needsTaskCommit(TaskAttemptContext context) throws IOException {
    try {
      return hadoop.needsTaskCommit(context);
    } catch (FileNotFoundException e) { // a staging task that wrote nothing
      return false;
    }
  }

  public void commitTask(TaskAttemptContext context) throws IOException {
    if (!magic) {
      refuseStaged();
    }
    hadoop.commitTask(context);
    byte[] data = disk.read(set);
    if (data == null) {
      throw new IOException(set + ", which was just written, is not there");
    }
    List commits = (List) ((Map) new ObjectMapper().readValue(data, Map.class)).get("commits");
    if (!disk.exists(layout.alive)) { // after the set is there, and the end of a job the other way
      giveUp(commits, data);
      requireLiveJob(context);
    }
    refuseUploaded(commits, data);
    message = new LinkedHashMap();
    message.put("taskId", taskId(context));
    message.put("attemptId", attemptId(context));
    message.put("manifest", disk.fs.makeQualified(set).toUri().toString());
    message.put("digest", ManifestFile.digest(data));
    long bytes = 0;
    for (int i = 0; i < commits.size(); i++) {
      bytes += ((Number) ((Map) commits.get(i)).get("length")).longValue();
    }
    message.put("files", Integer.valueOf(commits.size()));
    message.put("bytes", Long.valueOf(bytes));
    message.put("absolute", new LinkedHashMap());
    message.put("partitions", new ArrayList(partitions));
  }

  public void abortTask(TaskAttemptContext context) throws IOException {
    hadoop.abortTask(context);
  }

  /** Refuses staged files that could not be published: Hadoop would leave some of them out. */
  private void refuseStaged() throws IOException {
    Path work = hadoop.getWorkPath();
    int start = work.toUri().getPath().length() + 1;
    RemoteIterator files = work.getFileSystem(conf).listFiles(work, true);
    while (files.hasNext()) {
      String path = ((LocatedFileStatus) files.next()).getPath().toUri().getPath();
      layout.refuseReserved(ManifestFile.below(layout.dest, path.substring(start)));
    }
  }

  /** Refuses a set with an upload that could not be published, and aborts all its uploads. */
  private void refuseUploaded(List commits, byte[] data) throws IOException {
    try {
      for (int i = 0; i < commits.size(); i++) {
        layout.refuseReserved(finalPath((Map) commits.get(i)));
      }
    } catch (IOException e) {
      try {
        giveUp(commits, data);
      } catch (Exception left) {
        e.addSuppressed(left);
      }
      throw e;
    }
  }

  /** Returns where the file of an upload appears. */
  private Path finalPath(Map commit) {
    URI uri = layout.dest.toUri();
    return new Path(uri.getScheme(), uri.getAuthority(), "/" + commit.get("destinationKey"));
  }

  private void requireLiveJob(TaskAttemptContext context) throws IOException {
    if (!disk.exists(layout.alive)) {
      throw new IOException("job " + layout.jobId + " has ended before " + attemptId(context));
    }
  }

  /**
   * Aborts the uploads of a set that no job commit may take, and deletes it. One that cannot be
   * aborted keeps the set there, which names it.
   */
  private void giveUp(List commits, byte[] data) throws IOException {
    FileSystem fs = layout.dest.getFileSystem(conf);
    MultipartUploader uploader =
        (MultipartUploader) fs.createMultipartUploader(layout.dest).build();
    try {
      for (int i = 0; i < commits.size(); i++) {
        Map commit = (Map) commits.get(i);
        byte[] id = String.valueOf(commit.get("uploadId")).getBytes(StandardCharsets.UTF_8);
        Path file = finalPath(commit);
        try {
          uploader.abort(BBUploadHandle.from(ByteBuffer.wrap(id)), file).get();
        } catch (ExecutionException e) {
          if (!(e.getCause() instanceof FileNotFoundException)) { // it has ended already
            throw new IOException("an upload of " + file + " is left, which " + set + " names", e);
          }
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
          throw new IOException("uploads are left, which " + set + " names", e);
        }
      }
    } finally {
      uploader.close();
    }
    if (Arrays.equals(data, disk.read(set))) {
      disk.fs.delete(set, false);
    }
  }
}
