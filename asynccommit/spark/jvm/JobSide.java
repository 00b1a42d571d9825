package org.asynccommit.spark;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Job setup, commit and abort as the driver's JVM does them: the commit itself is Python's.
 *
 * <p>Once the commit record exists the JVM deletes nothing, also when Python is dead: the record and
 * what is beside it are all that is needed to finish the commit. Spark calls abort in both cases.
 */
final class JobSide {
  private static final Logger LOG = LoggerFactory.getLogger(JobSide.class);

  private final Layout layout;
  private final Disk disk;
  private boolean madeDest = false;
  private boolean committed = false;
  private boolean unanswered = false;

  JobSide(Layout layout, FileSystem fs, Configuration conf) {
    this.layout = layout;
    this.disk = new Disk(fs, conf);
  }

  void setup(Configuration conf) throws Exception {
    if (disk.exists(layout.attemptDir)) {
      throw new IOException("it has begun already, in " + layout.attemptDir);
    }
    madeDest = !disk.exists(layout.dest);
    conf.setBoolean(Keys.MADE_DESTINATION, madeDest);
    try {
      disk.mkdirs(layout.manifests);
      disk.mkdirs(layout.alive);
      if (!disk.local) { // credentials that Python lacks are found now, not when the tasks are done
        Driver.ask(request("check", conf));
      }
    } catch (Exception e) {
      delete(layout.jobDir); // Spark calls no abort for a job whose setup failed
      throw e;
    }
  }

  private Map request(String what, Configuration conf) throws IOException {
    Map request = new LinkedHashMap();
    request.put("version", Integer.valueOf(1));
    request.put("what", what);
    request.put("dest", text(layout.dest));
    request.put("jobId", layout.jobId);
    request.put("attempt", Integer.valueOf(layout.attempt));
    request.put("conf", Keys.userOptions(conf));
    request.put("storage", Keys.storageOptions(conf));
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
    Map request = request("commit", conf);
    request.put("tasks", tasks);
    request.put("overwrite", new ArrayList(dynamic ? touched(tasks) : overwrite));
    try {
      Driver.ask(request);
    } catch (Driver.NoAnswer e) {
      unanswered = true;
      if (!namesThisJob(layout.success())) {
        throw Driver.refusal(
            "asynccommit: no answer from the Python driver, so it is not known whether job "
                + layout.jobId + " was committed to " + layout.dest + ": " + e.getMessage());
      }
      LOG.warn("No answer from Python, but {} says that the job is committed", layout.success());
    }
    committed = true;
  }

  /** Undoes setup, unless a commit has begun: then nothing is touched. */
  void abort() throws IOException {
    if (committed) {
      LOG.info("Job {} is committed, so there is nothing to abort", layout.jobId);
    } else if (disk.exists(layout.record)) {
      LOG.warn("The commit of job {} has begun: nothing is deleted", layout.jobId);
    } else if (unanswered) {
      fenceAndDelete();
    } else {
      disk.fs.delete(layout.alive, true); // first: from now on stragglers clean up as well
      delete(layout.jobDir);
    }
  }

  /** Python may be alive though it did not answer: take its directory away, then look again. */
  private void fenceAndDelete() throws IOException {
    Path fenced = new Path(layout.temporary, layout.jobId + ".aborted");
    if (!disk.exists(layout.jobDir) || !disk.fs.rename(layout.jobDir, fenced)) {
      return;
    }
    if (disk.exists(new Path(new Path(fenced, layout.attemptDir.getName()), layout.record.getName()))) {
      disk.fs.rename(fenced, layout.jobDir);
      LOG.warn("The commit of job {} has begun: nothing is deleted", layout.jobId);
    } else {
      delete(fenced);
    }
  }

  private void delete(Path jobDir) throws IOException {
    disk.deleteTree(jobDir);
    disk.removeEmpty(layout, madeDest);
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

  /** Returns the partition directories that the tasks have written to, in their final place. */
  private Set touched(List tasks) {
    Set found = new LinkedHashSet();
    for (int i = 0; i < tasks.size(); i++) {
      Map task = (Map) tasks.get(i);
      Object[] partitions = ((List) task.get("partitions")).toArray();
      for (int j = 0; j < partitions.length; j++) {
        found.add(text(new Path(layout.dest, (String) partitions[j])));
      }
      Object[] finals = ((Map) task.get("absolute")).values().toArray();
      for (int j = 0; j < finals.length; j++) {
        String uri = (String) finals[j];
        found.add(uri.substring(0, uri.lastIndexOf('/')));
      }
    }
    return found;
  }

  private String text(Path path) {
    return disk.fs.makeQualified(path).toUri().toString();
  }
}
