package org.asynccommit.spark;

import java.io.IOException;
import java.util.Set;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A job whose tasks write manifests into its directory under the destination. */
final class ManifestJob extends JobSide {
  private static final Logger LOG = LoggerFactory.getLogger(ManifestJob.class);

  private final boolean alone;

  /** @param alone no job had anything there a moment ago, so none has this one's id */
  ManifestJob(Layout layout, Engine engine, FileSystem fs, Configuration conf, boolean alone) {
    super(layout, engine, fs, fs, conf);
    this.alone = alone;
  }

  void setup(Set overwrite, boolean dynamic, Configuration conf) throws Exception {
    if (!alone && disk.exists(layout.attemptDir)) {
      throw new IOException("it has begun already, in " + layout.attemptDir);
    }
    madeDest = !disk.exists(layout.dest);
    conf.setBoolean(Keys.MADE_DESTINATION, madeDest);
    try {
      Future made = madeDest && !disk.local ? disk.begin(layout.madeDest) : null;
      disk.mkdirs(layout.manifests);
      if (!madeDest || disk.objects) { // where a parent is not there of itself
        disk.mkdirs(layout.alive);
      }
      if (made != null) {
        Listings.wait(made);
      } else if (madeDest) {
        disk.mkdirs(layout.madeDest);
      }
      disk.settle(layout.attemptDir, madeDest ? layout.dest.getParent() : layout.dest);
      Filesystems.share(disk.fs, layout.attemptDir);
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
      delete(layout.jobDir);
    } catch (IOException e) {
      LOG.warn("Job {} was refused and left {} behind", layout.jobId, layout.jobDir, e);
    }
    return why;
  }

  void abort() throws IOException {
    if (committed) {
      LOG.info("Job {} is committed, so there is nothing to abort", layout.jobId);
    } else if (unanswered) {
      LOG.warn("Job {} was not answered for: {}", layout.jobId, settle());
      if (!mayBe(layout.attemptDir)) {
        disk.removeEmpty(layout, madeDest);
      }
    } else if (disk.exists(layout.record)) {
      LOG.warn("The commit of job {} has begun: nothing is deleted", layout.jobId);
    } else {
      disk.fs.delete(layout.alive, true); // first: from now on stragglers clean up as well
      delete(layout.jobDir);
    }
  }

  private void delete(Path jobDir) throws IOException {
    disk.deleteTree(jobDir);
    disk.removeEmpty(layout, madeDest);
  }
}
