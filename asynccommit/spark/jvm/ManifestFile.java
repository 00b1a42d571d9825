package org.asynccommit.spark;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;

/** The manifest of one task attempt: what is in its directory, in Hadoop's JSON. */
final class ManifestFile {
  private static final String TYPE =
      "org.apache.hadoop.mapreduce.lib.output.committer.manifest.files.TaskManifest/1";

  /** A directory that a job commit makes if it is missing; nobody looks whether it is there. */
  private static final int NOT_FOUND = 1;

  private static final ObjectMapper JSON = new ObjectMapper(); // for all threads

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

  /**
   * Lists a task attempt's directory and what is below it, for the destination.
   *
   * @param expected names of directories below it that the task was given to write to
   */
  void scan(Path source, Collection expected) throws IOException {
    List found = disk.objects ? GcsFiles.below(disk.fs, source) : null;
    if (found != null) {
      addObjects(found, source);
    } else if (disk.local && LocalTree.isPlain(disk.fs)) {
      String path = source.toUri().getPath();
      String from = text(new Path(path)); // file:///, as in listings
      if (!addLocal(path, from, textOfDest(), "", 1)) {
        files.clear();
        directories.clear();
        bytes = 0;
        list(source, expected);
      }
    } else if (!disk.objects || disk.exists(source)) { // not if the attempt has written nothing
      list(source, expected);
    }
  }

  private void addObjects(List found, Path source) throws IOException {
    Set known = new HashSet();
    for (int i = 0; i < found.size(); i++) {
      GcsFiles file = (GcsFiles) found.get(i);
      int slash = file.name.indexOf('/');
      for (int level = 1; slash >= 0; level++) {
        if (known.add(file.name.substring(0, slash))) {
          addDirectory(below(layout.dest, file.name.substring(0, slash)), level);
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

  private void list(Path source, Collection expected) throws IOException {
    Listings listings = new Listings(disk.fs);
    listings.list(source, expected);
    addListed(listings, source, layout.dest, 1);
  }

  /** Adds what was listed at {@code source} and below; levels are those of Hadoop. */
  private void addListed(Listings listings, Path source, Path dest, int level) throws IOException {
    List children = listings.of(source);
    List inner = new ArrayList();
    for (int i = 0; children != null && i < children.size(); i++) {
      FileStatus child = (FileStatus) children.get(i);
      if (child.isDirectory()) {
        inner.add(child.getPath());
      } else if (child.isFile()) {
        Path to = below(dest, child.getPath().getName());
        add(child.getPath(), to, child.getLen(), disk.etag(child));
      }
    }
    for (int i = 0; i < inner.size(); i++) {
      Path from = (Path) inner.get(i);
      Path to = below(dest, from.getName());
      addDirectory(to, level);
      addListed(listings, from, to, level + 1);
    }
  }

  /**
   * Adds what is in a directory of a local disk and below, in the order of Hadoop's listings.
   *
   * @param path of the directory
   * @param from its URI
   * @param to the URI of the directory at the destination
   * @param name of that one below the destination, with a slash at its end; empty for itself
   * @return whether that was possible: not with links, for which Hadoop must be asked
   */
  private boolean addLocal(String path, String from, String to, String name, int level)
      throws IOException {
    List children = LocalTree.children(path);
    for (int i = 0; children != null && i < children.size(); i++) {
      LocalTree child = (LocalTree) children.get(i);
      if (!child.directory) {
        layout.refuseReserved(name + child.name);
        String encoded = "/" + LocalTree.encode(child.name);
        addFile(from + encoded, to + encoded, child.size, child.etag);
      }
    }
    boolean all = children != null;
    for (int i = 0; all && i < children.size(); i++) {
      LocalTree child = (LocalTree) children.get(i);
      if (child.directory) {
        String there = name + child.name;
        layout.refuseReserved(there);
        String encoded = "/" + LocalTree.encode(child.name);
        addDirectory(to + encoded, level);
        String inner = path + "/" + child.name;
        all = addLocal(inner, from + encoded, to + encoded, there + "/", level + 1);
      }
    }
    return all;
  }

  private void add(Path source, Path dest, long size, String etag) throws IOException {
    layout.refuseReserved(dest);
    addFile(text(source), text(dest), size, etag);
  }

  private void addFile(String source, String dest, long size, String etag) {
    Map entry = new LinkedHashMap();
    entry.put("s", source);
    entry.put("d", dest);
    entry.put("z", Long.valueOf(size));
    if (etag != null && etag.length() > 0) {
      entry.put("e", etag);
    }
    files.add(entry);
    bytes += size;
  }

  private void addDirectory(Path dest, int level) throws IOException {
    layout.refuseReserved(dest);
    addDirectory(text(dest), level);
  }

  private void addDirectory(String dest, int level) {
    Map entry = new LinkedHashMap();
    entry.put("d", dest);
    entry.put("t", Integer.valueOf(NOT_FOUND));
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
    return JSON.writerWithDefaultPrettyPrinter().writeValueAsBytes(root);
  }

  /** Returns which attempt wrote a manifest, null if that cannot be read. */
  static String attemptOf(byte[] data) {
    try {
      return (String) ((Map) JSON.readValue(data, Map.class)).get("taskAttemptID");
    } catch (IOException e) {
      return null;
    } catch (ClassCastException e) {
      return null;
    }
  }

  private String textOfDest() {
    String dest = text(layout.dest);
    return dest.endsWith("/") ? dest.substring(0, dest.length() - 1) : dest;
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
