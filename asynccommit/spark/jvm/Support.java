package org.asynccommit.spark;

import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.Set;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.internal.SQLConf;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Whether Python commits what is written to a place, and what becomes of it otherwise. */
final class Support {
  private static final Logger LOG = LoggerFactory.getLogger(AsyncCommitProtocol.class);
  private static final Set WARNED = Collections.synchronizedSet(new LinkedHashSet());

  private Support() {}

  /** Returns whether Python does; if not, the write is left to Spark with a warning, or refused. */
  static boolean decide(FileSystem fs, String path) throws Exception {
    SQLConf conf = SQLConf.get();
    boolean ours = fs != null && path != null && Keys.isSupported(conf, fs, new Path(path));
    if (!ours) {
      delegate(fs, path, conf);
    }
    return ours;
  }

  private static void delegate(FileSystem fs, String path, SQLConf conf) throws Exception {
    String scheme = fs == null ? null : fs.getUri().getScheme();
    String why = null;
    if (fs != null && path != null && Keys.isNamed(conf, "*")) {
      why = Filesystems.refusal(fs, new Path(path));
    }
    String known = why == null ? "only for " + Keys.schemes(conf) : why;
    if ("refuse".equals(conf.getConfString(Keys.UNSUPPORTED, "delegate"))) {
      throw Driver.refusal(
          "asynccommit: there is no store for " + path + " (" + known + "): set "
              + Keys.UNSUPPORTED + "=delegate to write it with Spark's own commit protocol");
    }
    if (WARNED.add(String.valueOf(scheme))) {
      LOG.warn("asynccommit has no store for {} ({}): Spark's own commit protocol writes it", path, known);
    }
  }
}
