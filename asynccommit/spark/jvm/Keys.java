package org.asynccommit.spark;

import java.io.IOException;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.internal.SQLConf;

/** The names that the Java and the Python side agree on, and the options that a user has set. */
final class Keys {
  /** The version of the package that this is from; see jars.py. */
  static final String BUILD = "@BUILD@";

  /** The capability that Azure's client has where an account has a hierarchical namespace. */
  static final String DIRECTORIES = "fs.capability.etags.preserved.in.rename";

  /** Where the Python side leaves its callback; see {@link Callback}. */
  static final String CALLBACK = "asynccommit.spark.callback";

  /** Where {@link Child} keeps the function that asks it. */
  static final String CHILD = "asynccommit.spark.child";

  /** What is locked while the child is looked for and started. */
  static final String CHILD_LOCK = "asynccommit.spark.child.lock";

  /** Where the Python side leaves {@link Filesystems}. */
  static final String FILES = "asynccommit.spark.files";

  /** Schemes that Python commits, with commas between; {@code *} is any that this JVM can open. */
  static final String SCHEMES = "spark.asynccommit.schemes";

  /** The default: those that Python has a store for, and any other that this JVM can open. */
  private static final String COMMITTED = "file,abfs,abfss,az,gs,gcs,hdfs,s3,s3a,viewfs,*";

  /** What to do with any other scheme: {@code delegate} to Spark's own protocol or {@code refuse}. */
  static final String UNSUPPORTED = "spark.asynccommit.unsupportedScheme";

  /** Where the Python side leaves the path of its interpreter; see {@link Python}. */
  static final String PYTHON = "asynccommit.spark.python";

  /** Where the Python side leaves the folders that its modules come from. */
  static final String PYTHON_PATH = "asynccommit.spark.python.path";

  /** The driver tells tasks whether the destination is this job's own. */
  static final String MADE_DESTINATION = "org.asynccommit.job.made.destination";

  /** Spark's name for the id that driver and tasks agree on. */
  static final String JOB_UUID = "spark.sql.sources.writeJobUUID";

  private static final String[] FAMILIES = {
    "mapreduce.manifest.committer.",
    "mapreduce.fileoutputcommitter.",
    "fs.s3a.committer.",
    "asynccommit.",
    "spark.asynccommit."
  };

  private static final String[] STORAGE = {"fs.azure.", "fs.gs.", "fs.s3a.", "google.cloud."};

  // For HDFS only: others would refuse these.
  private static final String[] HDFS = {
    "dfs.client.", "dfs.ha.", "dfs.namenode.rpc-address", "dfs.nameservices", "dfs.data.transfer.",
    "dfs.encrypt.data.transfer", "fs.defaultFS", "fs.permissions.", "fs.viewfs.",
    "hadoop.rpc.protection", "hadoop.security.authentication"
  };

  private static final String[] LOCAL = {"fs.permissions."};

  /** Whether a commit that another process continues may lead out of its destination. */
  static final String OUTSIDE = "spark.asynccommit.resume.outside";

  /** The user's name for what a job does, which is done once. */
  static final String JOB_KEY = "asynccommit.job.key";

  private static final String ON_FAILURE = "asynccommit.on.failure";

  private Keys() {}

  /** Whether a commit that fails half-way is to be taken back, not kept for a resume. */
  static boolean rollsBack(Configuration conf) {
    String policy = conf.get("spark." + ON_FAILURE, conf.get(ON_FAILURE, "keep"));
    return "rollback".equalsIgnoreCase(policy.trim());
  }

  /** Returns the schemes that Python commits, with commas between. */
  static String schemes(SQLConf conf) {
    return conf.getConfString(SCHEMES, COMMITTED);
  }

  /** Whether Python commits what is written to a filesystem. */
  static boolean isSupported(SQLConf conf, FileSystem fs, Path path) throws IOException {
    return fs != null
        && (isNamed(conf, fs.getUri().getScheme())
            || (isNamed(conf, "*") && Filesystems.refusal(fs, path) == null));
  }

  /** Whether the schemes that Python commits name this one. */
  static boolean isNamed(SQLConf conf, String scheme) {
    return ("," + schemes(conf) + ",").contains("," + scheme + ",");
  }

  /** Returns the user's name for what a job does, null if there is none. */
  static String jobKey(Configuration conf) {
    return conf.get("spark." + JOB_KEY, conf.get(JOB_KEY));
  }

  /** Returns what the user has set for the stores, credentials among it: never to be logged. */
  static Map storageOptions(Configuration conf, Path dest) {
    String scheme = dest.toUri().getScheme();
    if ("file".equals(scheme)) {
      return options(conf, LOCAL);
    }
    boolean hdfs = "hdfs".equals(scheme) || "viewfs".equals(scheme);
    return options(conf, hdfs ? HDFS : STORAGE);
  }

  /** Returns the options of our families that are neither Hadoop's nor Spark's defaults. */
  static Map userOptions(Configuration conf) {
    return options(conf, FAMILIES);
  }

  private static Map options(Configuration conf, String[] families) {
    Map options = new LinkedHashMap();
    Iterator entries = conf.iterator();
    while (entries.hasNext()) {
      String key = (String) ((Map.Entry) entries.next()).getKey();
      if (isOf(families, key) && isSetByUser(conf.getPropertySources(key))) {
        options.put(key, conf.get(key));
      }
    }
    return options;
  }

  private static boolean isOf(String[] families, String key) {
    for (int i = 0; i < families.length; i++) {
      if (key.startsWith(families[i])) {
        return true;
      }
    }
    return false;
  }

  private static boolean isSetByUser(String[] sources) {
    if (sources == null || sources.length == 0) {
      return true;
    }
    String last = sources[sources.length - 1];
    return !last.endsWith("-default.xml") && !last.equals("Set by Spark to default values");
  }
}
