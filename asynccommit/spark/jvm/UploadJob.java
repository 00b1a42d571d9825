package org.asynccommit.spark;

import java.io.IOException;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A job whose tasks leave sets of pending uploads, which Python completes. */
final class UploadJob extends JobSide {
  private static final Logger LOG = LoggerFactory.getLogger(UploadJob.class);

  private final UploadTask task;
  private final Configuration conf;

  UploadJob(UploadTask task, Engine engine, FileSystem fs, Configuration conf)
      throws IOException {
    super(task.layout, engine, fs, task.layout.attemptDir.getFileSystem(conf), conf);
    this.task = task;
    this.conf = conf;
  }

  Map request(String what, Configuration conf) throws IOException {
    Map request = super.request(what, conf);
    request.put("committer", UploadTask.nameOf(task.hadoop));
    if (!layout.attemptDir.toString().contains("/__magic_job-")) {
      Path users = up(layout.attemptDir, 4); // <tmp>/<user>/<uuid>/staging-uploads/_temporary/<n>
      request.put("pending", text(working, users.getParent()));
      request.put("user", users.getName()); // as Hadoop has it, which may be another than Python's
    }
    return request;
  }

  private static Path up(Path path, int levels) {
    Path at = path;
    for (int i = 0; i < levels; i++) {
      at = at.getParent();
    }
    return at;
  }

  private static String text(Disk disk, Path path) {
    return disk.fs.makeQualified(path).toUri().toString();
  }

  void setup(Set overwrite, boolean dynamic, Configuration conf) throws Exception {
    try {
      Driver.ask(engine, request("check", overwrite, dynamic, conf));
    } catch (Driver.Taken e) {
      throw e;
    } catch (Driver.NoAnswer e) {
      throw refused(
          Driver.refusal(
              "asynccommit: no answer from " + engine.name() + ", so job " + layout.jobId
                  + " was not begun: " + e.getMessage()));
    } catch (Exception e) {
      throw refused(e);
    }
  }

  /** Deletes what setup has made, because Spark calls no abort for a job whose setup failed. */
  private Exception refused(Exception why) {
    try {
      task.undoSetup();
    } catch (IOException e) {
      LOG.warn("Job {} was refused and left {} behind", layout.jobId, layout.attemptDir, e);
    }
    return why;
  }

  void abort() throws IOException {
    if (committed) {
      LOG.info("Job {} is committed, so there is nothing to abort", layout.jobId);
      return;
    }
    if (unanswered) {
      LOG.warn("Job {} was not answered for: {}", layout.jobId, settle());
      return;
    }
    try {
      Driver.ask(engine, request("abort", conf)); // which leaves alone what has begun
    } catch (Exception e) {
      LOG.warn(
          "Job {} was not aborted, and its uploads go on costing: asynccommit uploads list {}",
          layout.jobId, layout.dest, e);
    }
  }
}
