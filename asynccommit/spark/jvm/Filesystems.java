package org.asynccommit.spark;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.security.PrivilegedExceptionAction;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.security.UserGroupInformation;

/**
 * The filesystems of this JVM that Python works on, and whether a commit can rely on them.
 *
 * <p>It hangs in the JVM's system properties, as a map, because sessions may load these classes with
 * different class loaders: a job adds the filesystem that its tasks write to, and Python opens it.
 */
public final class Filesystems extends ConcurrentHashMap {
  private static final long serialVersionUID = 1L;
  private static final String FACTS = "facts of ";
  private static final String PLACE = "place on ";
  private static final String USER = "user of ";
  private static final String QUICK = "quick client of ";
  private static final String DELAY =
      "dfs.client.block.write.locateFollowingBlock.initial.delay.ms";
  private static final String TRIES = "dfs.client.block.write.locateFollowingBlock.retries";
  private static final int USUAL = 400; // milliseconds
  private static final String ETAGS = "fs.capability.etags.available";
  private static final String KEPT = "fs.capability.etags.preserved.in.rename";
  private static final String READ_ONLY = "fs.capability.paths.read-only-connector";
  private static final String LATE = "fs.capability.directory.listing.inconsistent";
  private static final String COPIES =
      "its rename copies each file and deletes it, so it is not atomic";
  private static final String CLIENT = "it is a client of servers that promise no atomic rename";

  // Where no capability tells: the class, or one that it derives from, and the reason.
  private static final String[][] UNFIT = {
    {"org.apache.hadoop.fs.s3a.S3AFileSystem", COPIES},
    {"com.amazon.ws.emr.hadoop.fs.EmrFileSystem", COPIES},
    {"com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystemBase", COPIES},
    {"org.apache.hadoop.fs.gs.GoogleHadoopFileSystem", COPIES},
    {"org.apache.hadoop.fs.azure.NativeAzureFileSystem", COPIES},
    {"org.apache.hadoop.fs.aliyun.oss.AliyunOSSFileSystem", COPIES},
    {"org.apache.hadoop.fs.cosn.CosNFileSystem", COPIES},
    {"org.apache.hadoop.fs.CosFileSystem", COPIES},
    {"org.apache.hadoop.fs.obs.OBSFileSystem", COPIES},
    {"org.apache.hadoop.fs.tosfs.TosFileSystem", COPIES},
    {"org.apache.hadoop.fs.swift.snative.SwiftNativeFileSystem", COPIES},
    {"com.oracle.bmc.hdfs.BmcFilesystem", COPIES},
    {"com.ibm.stocator.fs.ObjectStoreFileSystem", COPIES},
    {"org.apache.hadoop.fs.HarFileSystem", "an archive is read-only"},
    {"org.apache.hadoop.fs.http.AbstractHttpFileSystem", "it is read-only"},
    {"org.apache.hadoop.fs.ftp.FTPFileSystem", CLIENT},
    {"org.apache.hadoop.fs.sftp.SFTPFileSystem", CLIENT},
  };

  /** Returns the reason why a filesystem is unfit, as far as its class and capabilities tell. */
  static String refusal(FileSystem fs, Path path) throws IOException {
    for (Class at = fs.getClass(); at != null; at = at.getSuperclass()) {
      for (int i = 0; i < UNFIT.length; i++) {
        if (at.getName().equals(UNFIT[i][0])) {
          return UNFIT[i][1];
        }
      }
    }
    if (can(fs, path, READ_ONLY)) {
      return "it is read-only";
    }
    if (can(fs, path, ETAGS) && !can(fs, path, KEPT)) {
      return COPIES;
    }
    if (can(fs, path, LATE)) {
      return "its listings may lack new files";
    }
    FileSystem[] mounted = fs.getChildFileSystems();
    for (int i = 0; mounted != null && i < mounted.length; i++) {
      String why = refusal(mounted[i], new Path("/"));
      if (why != null) {
        return mounted[i].getUri() + " is behind it: " + why;
      }
    }
    return null;
  }

  private static boolean can(FileSystem fs, Path path, String capability) {
    try {
      return fs.hasPathCapability(path, capability);
    } catch (IOException e) { // of a path that is in no mount
      return false;
    } catch (IllegalArgumentException e) {
      return false;
    }
  }

  /**
   * Has Python find a filesystem.
   *
   * @param place a directory for a probe; null if there is none yet
   */
  static void share(FileSystem fs, Path place) throws IOException {
    Object found = System.getProperties().get(Keys.FILES);
    if (found instanceof Map) {
      share((Map) found, fs, place);
    }
  }

  private static void share(Map shared, FileSystem fs, Path place) throws IOException {
    String name = nameOf(fs);
    if (shared.get(name) != fs) {
      refuseAnotherUser(name, (UserGroupInformation) shared.get(USER + name));
      shared.remove(FACTS + name);
      shared.remove(QUICK + name);
      shared.put(name, fs);
      shared.put(USER + name, UserGroupInformation.getCurrentUser());
    }
    if (place != null) {
      shared.put(PLACE + name, place);
    }
  }

  /** Refuses a second user: a name leads Python to one filesystem, and so to one user's rights. */
  private static void refuseAnotherUser(String name, UserGroupInformation first) throws IOException {
    String now = UserGroupInformation.getCurrentUser().getUserName();
    if (first != null && !first.getUserName().equals(now)) {
      throw new IOException(
          name + " is in use as " + first.getUserName() + " in this JVM, and this session acts as "
              + now + ": write as one user, or start a Spark for each");
    }
  }

  /**
   * Returns the name of the user that this JVM is on HDFS, empty for one that a process beside it
   * cannot be: that of a ticket or a token, or one that another user acts for.
   */
  public String user() throws IOException {
    return userNow();
  }

  static String userNow() throws IOException {
    UserGroupInformation user = UserGroupInformation.getCurrentUser();
    boolean alone = UserGroupInformation.isSecurityEnabled() || user.getRealUser() != null;
    return alone ? "" : user.getShortUserName();
  }

  /** Whether the user of this JVM, and of this session, is that of a ticket which others find. */
  static boolean isTicket() throws IOException {
    return UserGroupInformation.isLoginTicketBased() && Engine.otherUser() == null;
  }

  private static String nameOf(FileSystem fs) {
    String authority = fs.getUri().getAuthority();
    return (fs.getUri().getScheme() + "://" + (authority == null ? "" : authority)).toLowerCase();
  }

  /**
   * Opens a filesystem as a session would, for Python.
   *
   * @param path a directory that may hold jobs
   */
  public void open(String path, Configuration conf) throws IOException {
    Path dest = new Path(path);
    FileSystem fs = dest.getFileSystem(conf);
    Path jobs = new Path(fs.makeQualified(dest), "_temporary");
    boolean probes = refusal(fs, dest) == null && isThere(fs, jobs);
    share(this, fs, probes ? jobs : null);
  }

  /** Whether a job or a session has opened a filesystem. */
  public boolean has(String name) {
    return get(name.toLowerCase()) != null;
  }

  /** Returns what takes calls to a filesystem, null if no job and no session has opened it. */
  public FileCalls calls(String name) throws IOException, InterruptedException {
    String key = name.toLowerCase();
    FileSystem fs = (FileSystem) get(key);
    return fs == null ? null : new FileCalls(quick(key, fs));
  }

  /**
   * Returns the same filesystem with a client that closes small files sooner. That of HDFS waits 0.4
   * seconds if the NameNode has not heard of the last block yet, which is usual for small files.
   */
  private FileSystem quick(String key, FileSystem fs) throws IOException, InterruptedException {
    final UserGroupInformation user = (UserGroupInformation) get(USER + key);
    if (user == null || !"hdfs".equals(fs.getUri().getScheme())) {
      return fs;
    }
    final URI uri = fs.getUri();
    final Configuration conf = new Configuration(fs.getConf());
    if (conf.getInt(DELAY, USUAL) == USUAL) {
      conf.setInt(DELAY, 10);
      conf.setInt(TRIES, 12); // the wait doubles each time: the last one is as long as before
    }
    synchronized (this) {
      Object found = get(QUICK + key);
      if (found == null) {
        found =
            user.doAs(
                new PrivilegedExceptionAction() {
                  public Object run() throws IOException {
                    return FileSystem.newInstance(uri, conf);
                  }
                });
        put(QUICK + key, found);
      }
      return (FileSystem) found;
    }
  }

  /** Returns the facts about an open filesystem as JSON. */
  public String facts(String name) throws IOException {
    String key = FACTS + name.toLowerCase();
    Map facts = (Map) get(key);
    if (facts == null || !Boolean.TRUE.equals(facts.get("final"))) {
      facts = facts((FileSystem) get(name.toLowerCase()), (Path) get(PLACE + name.toLowerCase()));
      put(key, facts);
    }
    return new ObjectMapper().writeValueAsString(facts);
  }

  private static Map facts(FileSystem fs, Path place) throws IOException {
    Path at = place == null ? new Path(fs.getUri().resolve("/")) : place;
    boolean atomic = new Renames(fs).isAtomic();
    String refused = refusal(fs, at);
    boolean etags = can(fs, at, KEPT);
    boolean told = atomic || etags || refused != null;
    Probe probe = told || place == null ? null : new Probe(fs, place);
    Map facts = new LinkedHashMap();
    facts.put("class", fs.getClass().getName());
    facts.put("atomic", Boolean.valueOf(atomic));
    facts.put("refused", refused != null ? refused : probe == null ? null : probe.refused);
    facts.put("etags", Boolean.valueOf(etags));
    facts.put("survives", Boolean.valueOf(atomic || etags || (probe != null && probe.survives)));
    facts.put("final", Boolean.valueOf(told || probe != null));
    return facts;
  }

  private static boolean isThere(FileSystem fs, Path path) throws IOException {
    try {
      return fs.getFileStatus(path).isDirectory();
    } catch (FileNotFoundException e) {
      return false;
    }
  }

  /** A small tree that is renamed, where neither class nor capabilities tell what a rename does. */
  private static final class Probe {
    private static final int PAUSE = 1100; // milliseconds: some clocks have seconds only
    private static final long PAST = 100000; // milliseconds

    final String refused;
    boolean survives = false;

    Probe(FileSystem fs, Path place) throws IOException {
      Path base = new Path(place, ".asynccommit-probe-" + UUID.randomUUID() + ".tmp");
      try {
        refused = run(fs, base);
      } finally {
        fs.delete(base, true);
      }
    }

    private String run(FileSystem fs, Path base) throws IOException {
      Path from = new Path(base, "from");
      Path to = new Path(base, "to");
      Path file = new Path(from, "f");
      fs.mkdirs(from);
      OutputStream out = fs.create(file, false);
      out.write(1);
      out.close();
      age(fs, file);
      FileStatus before = fs.getFileStatus(file);
      if (!fs.rename(from, to) || isThere(fs, from)) {
        return "it does not rename a directory";
      }
      FileStatus after = fs.getFileStatus(new Path(to, "f"));
      survives = before.getModificationTime() == after.getModificationTime();
      if (!survives) {
        return "its rename makes new files: their modification time changes";
      }
      Path second = new Path(base, "second");
      fs.rename(new Path(to, "f"), second);
      return isThere(fs, to) && fs.getFileStatus(second).getLen() == 1
          ? null
          : "a directory is gone once it is empty";
    }

    /** Has a copy of a file show by its time. */
    private static void age(FileSystem fs, Path file) throws IOException {
      long now = fs.getFileStatus(file).getModificationTime();
      try {
        fs.setTimes(file, now - PAST, -1);
      } catch (UnsupportedOperationException e) {
        // The pause below does it.
      }
      if (fs.getFileStatus(file).getModificationTime() == now) {
        try {
          Thread.sleep(PAUSE);
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
        }
      }
    }
  }
}
