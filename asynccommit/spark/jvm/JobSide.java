package org.asynccommit.spark;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.execution.QueryExecutionException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Job setup, commit and abort as the driver's JVM does them: the commit itself is Python's.
 *
 * <p>Once the commit record exists the JVM deletes nothing, also when Python is dead: the record and
 * what is beside it are all that is needed to finish the commit, or to take it back. Spark calls abort
 * in both cases. A Python that answers has done by then what {@code asynccommit.on.failure} says; for
 * one that does not, {@link Undo} does it.
 */
abstract class JobSide {
  private static final Logger LOG = LoggerFactory.getLogger(JobSide.class);

  final Layout layout;

  /** What was asked whether the job may run commits it, too. */
  final Engine engine;

  /** Where the destination is. */
  final Disk disk;

  /** Where the job's own directory is; the same, but for uploads that are staged elsewhere. */
  final Disk working;

  boolean madeDest = false;
  boolean committed = false;
  boolean unanswered = false;
  private boolean rollsBack = false;
  private Undo undo = null;
  private String settled = null;

  JobSide(Layout layout, Engine engine, FileSystem fs, FileSystem working, Configuration conf) {
    this.layout = layout;
    this.engine = engine;
    this.disk = new Disk(fs, conf);
    this.working = new Disk(working, conf);
  }

  /**
   * Makes this job's directories, then has Python say whether the job may run at all.
   *
   * @param overwrite directories to replace
   * @param dynamic whether each partition with new files replaces the old one
   */
  abstract void setup(Set overwrite, boolean dynamic, Configuration conf) throws Exception;

  /** Undoes setup, unless a commit has begun: then nothing is touched. */
  abstract void abort() throws IOException;

  Map request(String what, Configuration conf) throws IOException {
    Map request = new LinkedHashMap();
    request.put("version", Integer.valueOf(1));
    request.put("what", what);
    request.put("dest", text(layout.dest));
    request.put("jobId", layout.jobId);
    request.put("attempt", Integer.valueOf(layout.attempt));
    request.put("conf", Keys.userOptions(conf));
    request.put("storage", storage(conf));
    request.put("hadoopUser", Filesystems.userNow());
    String user = Engine.otherUser();
    if (user != null) {
      request.put("actsAs", user);
      request.put("tasksAs", SparkContext.getOrCreate().sparkUser());
    }
    return request;
  }

  /** Returns the storage options, and what the driver's client has found out about the account. */
  private Map storage(Configuration conf) {
    Map options = Keys.storageOptions(conf, layout.dest);
    try {
      String scheme = working.fs.getUri().getScheme();
      if (scheme.startsWith("abfs") && working.fs.hasPathCapability(layout.dest, Keys.DIRECTORIES)) {
        options.putIfAbsent("fs.azure.account.hns.enabled", "true");
      }
    } catch (IOException e) {
      LOG.debug("Python asks whether the account of {} has directories", layout.dest, e);
    }
    return options;
  }

  Map request(String what, Set overwrite, boolean dynamic, Configuration conf)
      throws IOException {
    Map request = request(what, conf);
    request.put("overwrite", new ArrayList(overwrite));
    request.put("dynamic", Boolean.valueOf(dynamic));
    request.put("madeDestination", Boolean.valueOf(madeDest));
    return request;
  }

  /**
   * Has Python commit what the tasks reported.
   *
   * @param tasks the tasks' messages
   * @param overwrite directories to replace
   * @param dynamic whether each partition with new files replaces the old one
   */
  void commit(List tasks, Set overwrite, boolean dynamic, Configuration conf) throws Exception {
    if (committed) {
      return;
    }
    Map request = request("commit", overwrite, dynamic, conf);
    request.put("tasks", tasks);
    rollsBack = Keys.rollsBack(conf);
    undo = new Undo(undoing(tasks, overwrite, conf));
    unanswered = true; // until it is answered, whatever is thrown
    try {
      Driver.ask(engine, request);
      unanswered = false;
    } catch (QueryExecutionException e) {
      unanswered = false;
      throw e;
    } catch (Driver.NoAnswer e) {
      if (!namesThisJob(layout.success())) {
        throw Driver.refusal(
            "asynccommit: no answer from " + engine.name() + ", so it is not known whether job "
                + layout.jobId + " was committed to " + layout.dest + ": " + settle()
                + " (" + e.getMessage() + ")");
      }
      LOG.warn("No answer, but {} says that the job is committed", layout.success());
    } finally {
      undo.end();
    }
    committed = true;
  }

  /** Returns the request to undo the job; what may lead out of the table is known here only. */
  private Map undoing(List tasks, Set overwrite, Configuration conf) throws IOException {
    Map request = request(rollsBack ? "rollback" : "abort", conf);
    if (Filesystems.isTicket()) {
      request.remove("hadoopUser"); // a process without a JVM is that user, too
    }
    boolean outside = false;
    for (int i = 0; i < tasks.size(); i++) {
      outside |= !((Map) ((Map) tasks.get(i)).get("absolute")).isEmpty();
    }
    String dest = text(layout.dest);
    Object[] replaced = overwrite.toArray();
    for (int i = 0; i < replaced.length; i++) {
      outside |= !replaced[i].equals(dest) && !((String) replaced[i]).startsWith(dest + "/");
    }
    if (outside) {
      ((Map) request.get("conf")).put(Keys.OUTSIDE, "true");
    }
    return request;
  }

  /**
   * Does with an unanswered commit what the user wants, once, and returns that in words.
   *
   * <p>Python may be alive though it did not answer, and begin at any moment. So nothing is deleted
   * here: a process of its own does that, with the cares of every abort.
   */
  String settle() {
    if (settled == null) {
      if (mayBe(layout.record) && !rollsBack) {
        settled = "its commit has begun and is kept; say asynccommit status '" + layout.dest + "'";
      } else if (mayBe(layout.attemptDir)) {
        settled = undo.take();
      } else {
        settled = "its directory is gone, as after a commit";
      }
    }
    return settled;
  }

  boolean mayBe(Path path) {
    try {
      return working.exists(path);
    } catch (IOException e) { // also of a filesystem that the end of the JVM has closed
      return true;
    }
  }

  private boolean namesThisJob(Path success) {
    try {
      byte[] data = disk.read(success);
      Map marker = data == null ? null : (Map) new ObjectMapper().readValue(data, Map.class);
      return marker != null
          && layout.jobId.equals(marker.get("jobId"))
          && Boolean.TRUE.equals(marker.get("success"));
    } catch (IOException e) {
      return false;
    } catch (ClassCastException e) {
      return false;
    }
  }

  String text(Path path) {
    return disk.fs.makeQualified(path).toUri().toString();
  }
}
