package org.asynccommit.spark;

import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.RawLocalFileSystem;

/** One entry of a directory on a local disk, found by one look at it, where Hadoop takes seven. */
final class LocalTree {
  private static final LinkOption[] NO_LINK = {LinkOption.NOFOLLOW_LINKS};
  private static final String LOOK = "unix:ino,lastModifiedTime,size,isDirectory,isRegularFile";
  private static final int NANOSECONDS_SINCE = 14;

  /** The local filesystem of a Spark with Hive: it lists as Hadoop's does, and renames otherwise. */
  private static final String HIVES = "org.apache.hadoop.hive.ql.io.ProxyLocalFileSystem";

  final String name;
  final boolean directory;
  final long size;

  /** As Python's store has it; null where Java cannot tell. */
  final String etag;

  private LocalTree(String name, Map look) {
    this.name = name;
    this.directory = ((Boolean) look.get("isDirectory")).booleanValue();
    this.size = ((Long) look.get("size")).longValue();
    this.etag = etag(look);
  }

  /** Whether Hadoop's listings of this filesystem are what a directory's entries say. */
  static boolean isPlain(FileSystem fs) {
    String name = fs.getClass().getName();
    return (name.equals(LocalFileSystem.class.getName()) || name.equals(HIVES))
        && ((LocalFileSystem) fs).getRaw().getClass() == RawLocalFileSystem.class
        && FileSystems.getDefault().supportedFileAttributeViews().contains("unix");
  }

  /**
   * Returns what is in a directory, in its order and without Hadoop's checksums. Null if something
   * there is neither file nor directory, as a link: Hadoop knows what to make of it.
   */
  static List children(String directory) throws IOException {
    List found = new ArrayList();
    DirectoryStream each = Files.newDirectoryStream(new File(directory).toPath());
    try {
      for (Iterator all = each.iterator(); all.hasNext(); ) {
        Path path = (Path) all.next();
        String name = path.getFileName().toString();
        if (!name.startsWith(".") || !name.endsWith(".crc")) {
          Map look = look(path);
          if (look != null && !isEither(look)) {
            return null;
          }
          if (look != null) {
            found.add(new LocalTree(name, look));
          }
        }
      }
    } catch (DirectoryIteratorException e) {
      throw e.getCause();
    } finally {
      each.close();
    }
    return found;
  }

  /** Returns a name as it stands in the path of a URI, encoded as Hadoop's paths are. */
  static String encode(String name) throws IOException {
    if (isPlain(name)) { // which spares most names what takes as long as their look
      return name;
    }
    try {
      return new URI(null, null, "/" + name, null, null).getRawPath().substring(1);
    } catch (URISyntaxException e) {
      throw new IOException("no URI can have the name " + name, e);
    }
  }

  /**
   * Returns the etag that Python's store gives a file: inode, time of change, size. Null where Java
   * cannot tell them, as before Java 14, which cuts the time off after the microseconds.
   *
   * @param look its attributes of these names, of the unix view
   */
  static String etag(Map look) {
    if (javaVersion() < NANOSECONDS_SINCE) {
      return null;
    }
    long changed = ((FileTime) look.get("lastModifiedTime")).to(TimeUnit.NANOSECONDS);
    return Long.toHexString(((Long) look.get("ino")).longValue())
        + "-" + Long.toString(changed, 16)
        + "-" + Long.toHexString(((Long) look.get("size")).longValue());
  }

  /** Looks at what is at a path, not where a link leads; null if nothing is. */
  static Map look(Path path) throws IOException {
    try {
      return Files.readAttributes(path, LOOK, NO_LINK);
    } catch (NoSuchFileException e) {
      return null;
    }
  }

  private static boolean isPlain(String name) {
    for (int i = 0; i < name.length(); i++) {
      char c = name.charAt(i);
      boolean letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
      if (!letter && c != '-' && c != '_' && c != '.' && c != '=') {
        return false;
      }
    }
    return true;
  }

  private static boolean isEither(Map look) {
    return Boolean.TRUE.equals(look.get("isDirectory"))
        || Boolean.TRUE.equals(look.get("isRegularFile"));
  }

  private static int javaVersion() {
    String version = System.getProperty("java.specification.version", "1");
    try {
      return version.startsWith("1.") ? 8 : Integer.parseInt(version);
    } catch (NumberFormatException e) {
      return 0;
    }
  }
}
