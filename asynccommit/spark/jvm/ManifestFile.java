package org.asynccommit.spark;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;

/** The manifest of one task attempt: what is in its directory, in Hadoop's JSON. */
final class ManifestFile {
  private static final String TYPE =
      "org.apache.hadoop.mapreduce.lib.output.committer.manifest.files.TaskManifest/1";
  private static final int NOT_FOUND = 1;
  private static final int IS_FILE = 2;
  private static final int IS_DIRECTORY = 3;

  private final Disk disk;
  private final Layout layout;
  private final List files = new ArrayList();
  private final List directories = new ArrayList();
  private long bytes = 0;

  ManifestFile(Disk disk, Layout layout) {
    this.disk = disk;
    this.layout = layout;
  }

  int files() {
    return files.size();
  }

  long bytes() {
    return bytes;
  }

  /** Lists a task attempt's directory and what is below it, for the destination. */
  void scan(Path source) throws IOException {
    List found = disk.objects ? GcsFiles.below(disk.fs, source) : null;
    if (found != null) {
      addObjects(found, source);
    } else if (!disk.objects) {
      scan(source, layout.dest, true, 1);
    } else if (disk.exists(source)) { // not if the attempt has written nothing
      scan(source, layout.dest, false, 1);
    }
  }

  private void addObjects(List found, Path source) throws IOException {
    Set known = new HashSet();
    for (int i = 0; i < found.size(); i++) {
      GcsFiles file = (GcsFiles) found.get(i);
      int slash = file.name.indexOf('/');
      for (int level = 1; slash >= 0; level++) {
        if (known.add(file.name.substring(0, slash))) {
          addDirectory(below(layout.dest, file.name.substring(0, slash)), null, level);
        }
        slash = file.name.indexOf('/', slash + 1);
      }
      if (!file.name.endsWith("/")) {
        add(below(source, file.name), below(layout.dest, file.name), file.size, file.etag);
      }
    }
  }

  /** Returns what is at {@code name}, which may have any characters, below a directory. */
  static Path below(Path directory, String name) {
    URI uri = directory.toUri();
    return new Path(uri.getScheme(), uri.getAuthority(), uri.getPath() + "/" + name);
  }

  /** Lists {@code source} and what is below it; status codes and levels are those of Hadoop. */
  private void scan(Path source, Path dest, boolean destExists, int level) throws IOException {
    List below = new ArrayList();
    RemoteIterator children = disk.fs.listStatusIterator(source);
    while (children.hasNext()) {
      FileStatus child = (FileStatus) children.next();
      if (child.isDirectory()) {
        below.add(child);
      } else if (child.isFile()) {
        Path to = new Path(dest, child.getPath().getName());
        add(child.getPath(), to, child.getLen(), disk.etag(child));
      }
    }
    for (int i = 0; i < below.size(); i++) {
      Path from = ((FileStatus) below.get(i)).getPath();
      Path to = new Path(dest, from.getName());
      FileStatus there = destExists ? disk.status(to) : null;
      addDirectory(to, there, level);
      scan(from, to, there != null && there.isDirectory(), level + 1);
    }
  }

  private void add(Path source, Path dest, long size, String etag) throws IOException {
    layout.refuseReserved(dest);
    Map entry = new LinkedHashMap();
    entry.put("s", text(source));
    entry.put("d", text(dest));
    entry.put("z", Long.valueOf(size));
    if (etag != null && etag.length() > 0) {
      entry.put("e", etag);
    }
    files.add(entry);
    bytes += size;
  }

  private void addDirectory(Path dest, FileStatus there, int level) throws IOException {
    layout.refuseReserved(dest);
    int code = there == null ? NOT_FOUND : there.isDirectory() ? IS_DIRECTORY : IS_FILE;
    Map entry = new LinkedHashMap();
    entry.put("d", text(dest));
    entry.put("t", Integer.valueOf(code));
    entry.put("l", Integer.valueOf(level));
    directories.add(entry);
  }

  byte[] encode(String taskId, String attemptId) throws IOException {
    Map root = new LinkedHashMap();
    root.put("extraData", new LinkedHashMap());
    root.put("type", TYPE);
    root.put("version", Integer.valueOf(1));
    root.put("jobId", layout.jobId);
    root.put("jobAttemptNumber", Integer.valueOf(layout.attempt));
    root.put("taskID", taskId);
    root.put("taskAttemptID", attemptId);
    root.put("taskAttemptDir", text(layout.taskAttempt(attemptId)));
    root.put("files", files);
    root.put("directories", directories);
    return new ObjectMapper().writerWithDefaultPrettyPrinter().writeValueAsBytes(root);
  }

  /** Returns which attempt wrote a manifest, null if that cannot be read. */
  static String attemptOf(byte[] data) {
    try {
      return (String) ((Map) new ObjectMapper().readValue(data, Map.class)).get("taskAttemptID");
    } catch (IOException e) {
      return null;
    } catch (ClassCastException e) {
      return null;
    }
  }

  /** Returns the URI text of a path, percent-encoded as Hadoop's own manifests have it. */
  String text(Path path) {
    return disk.fs.makeQualified(path).toUri().toString();
  }

  static String digest(byte[] data) throws IOException {
    byte[] hash;
    try {
      hash = MessageDigest.getInstance("SHA-256").digest(data);
    } catch (NoSuchAlgorithmException e) {
      throw new IOException("this Java has no SHA-256", e);
    }
    StringBuilder text = new StringBuilder("sha256:");
    for (int i = 0; i < hash.length; i++) {
      text.append(Character.forDigit((hash[i] >> 4) & 15, 16));
      text.append(Character.forDigit(hash[i] & 15, 16));
    }
    return text.toString();
  }
}
