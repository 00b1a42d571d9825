package org.asynccommit.spark;

import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SessionState$;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Clears away a table that is there only because the driver of its first job was killed.
 *
 * <p>Spark looks whether a table is there before it asks a commit protocol anything, and in its default
 * mode refuses to write if it is, but makes the protocol before it looks.
 */
final class Leftovers {
  private static final Logger LOG = LoggerFactory.getLogger(Leftovers.class);

  private Leftovers() {}

  /**
   * Has Python remove a destination that dead jobs have made and in which nothing else is. Never
   * throws: what stays there is what Spark finds.
   *
   * @return whether no job has anything there, as far as was seen
   */
  static boolean clear(String path, String jobId) {
    try {
      SQLConf session = SQLConf.get();
      Configuration conf =
          SessionState$.MODULE$.newHadoopConf(SparkContext.getOrCreate().hadoopConfiguration(), session);
      FileSystem fs = new Path(path).getFileSystem(conf);
      Path dest = fs.makeQualified(new Path(path));
      if (isForeign(fs, dest, session)) {
        return false;
      }
      if (!isThere(fs, new Path(dest, "_temporary"))) {
        return true;
      }
      if (!isTemporaryOnly(fs, dest)) {
        return false;
      }
      Engine engine = Engine.forJob();
      if (engine instanceof Child && Engine.otherUser() != null) {
        return false; // nothing is removed with the rights of somebody else
      }
      Filesystems.share(fs, new Path(dest, "_temporary"));
      Map request = new LinkedHashMap();
      request.put("version", Integer.valueOf(1));
      request.put("what", "clear");
      request.put("dest", dest.toUri().toString());
      request.put("jobId", jobId);
      request.put("attempt", Integer.valueOf(0));
      request.put("conf", Keys.userOptions(conf));
      request.put("storage", Keys.storageOptions(conf, dest));
      request.put("hadoopUser", Filesystems.userNow());
      Driver.ask(engine, request);
    } catch (Exception e) {
      LOG.warn("What a killed job may have left in {} stays there: {}", path, e.getMessage());
    }
    return false;
  }

  private static boolean isForeign(FileSystem fs, Path dest, SQLConf session) throws IOException {
    String scheme = dest.toUri().getScheme();
    return !Keys.isSupported(session, fs, dest) || "s3a".equals(scheme) || "s3".equals(scheme);
  }

  private static boolean isThere(FileSystem fs, Path path) throws IOException {
    try {
      fs.getFileStatus(path);
      return true;
    } catch (FileNotFoundException e) {
      return false;
    }
  }

  /** Whether there is a directory of jobs and nothing else; of large tables little is listed. */
  private static boolean isTemporaryOnly(FileSystem fs, Path dest) throws IOException {
    if ("file".equals(dest.toUri().getScheme())) {
      return isOnly(new File(dest.toUri().getPath()));
    }
    try {
      RemoteIterator found = fs.listStatusIterator(dest);
      while (found.hasNext()) {
        if (!isTemporary(((FileStatus) found.next()).getPath().getName())) {
          return false;
        }
      }
      return true;
    } catch (FileNotFoundException e) {
      return false;
    }
  }

  private static boolean isOnly(File directory) throws IOException {
    DirectoryStream found = Files.newDirectoryStream(directory.toPath());
    try {
      Iterator each = found.iterator();
      while (each.hasNext()) {
        if (!isTemporary(((java.nio.file.Path) each.next()).getFileName().toString())) {
          return false;
        }
      }
      return true;
    } finally {
      found.close();
    }
  }

  private static boolean isTemporary(String name) {
    return "_temporary".equals(name);
  }
}
