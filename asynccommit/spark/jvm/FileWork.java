package org.asynccommit.spark;

import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import org.apache.hadoop.fs.EtagSource;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathIsDirectoryException;
import org.apache.hadoop.fs.QuotaUsage;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.io.IOUtils;

/** The methods of a store, each one call to a filesystem or a few. */
final class FileWork {
  private static final int PIECE = 1 << 20;
  private static final int FIRST = 1 << 16;
  private static final List NAMENODES = Arrays.asList("hdfs", "webhdfs", "swebhdfs");
  private static final List OWNERS =
      Arrays.asList("hdfs", "viewfs", "webhdfs", "swebhdfs", "ofs", "o3fs");

  private final FileSystem fs;
  private final Renames renames;

  FileWork(FileSystem fs) {
    this.fs = fs;
    this.renames = new Renames(fs);
  }

  /** Returns the result of a call, whose arguments begin at the third element. */
  Object run(String name, List call) throws IOException {
    Path path = path(call, 2);
    if ("rename".equals(name)) {
      return rename(path, path(call, 3), Boolean.TRUE.equals(call.get(4)), call.get(5) != null);
    } else if ("rename_many".equals(name)) {
      return renameMany((List) call.get(3));
    } else if ("head".equals(name)) {
      return facts(fs.getFileStatus(path));
    } else if ("list".equals(name)) {
      return list(path);
    } else if ("get".equals(name)) {
      return get(path, ((Number) call.get(3)).longValue());
    } else if ("put".equals(name)) {
      byte[] data = Base64.getDecoder().decode((String) call.get(3));
      return put(path, data, path(call, 4), Boolean.TRUE.equals(call.get(5)));
    } else if ("copy".equals(name)) {
      return copy(path, path(call, 3), path(call, 4), Boolean.TRUE.equals(call.get(5)));
    } else if ("delete".equals(name)) {
      return Boolean.valueOf(fs.delete(path, Boolean.TRUE.equals(call.get(3))));
    } else if ("mkdir".equals(name)) {
      return Boolean.TRUE.equals(call.get(3)) ? makePrivate(path) : mkdirs(path);
    } else if ("mkdir_new".equals(name)) {
      return mkdirNew(path, path(call, 3));
    } else if ("try_rename".equals(name)) {
      return tryRename(path, path(call, 3));
    } else if ("quotas".equals(name)) {
      return quotas(path);
    }
    throw new UnsupportedOperationException(name);
  }

  private Path path(List call, int at) {
    return renames.path((String) call.get(at));
  }

  /**
   * Renames one after another; returns how many, and the exception that ended it.
   *
   * @param groups of each: what its sources begin with, and its destinations, and how both end
   */
  private List renameMany(List groups) {
    List result = new ArrayList();
    int done = 0;
    try {
      for (int i = 0; i < groups.size(); i++) {
        List group = (List) groups.get(i);
        List ends = (List) group.get(2);
        for (int k = 0; k < ends.size(); k++) {
          renames.rename((String) group.get(0) + ends.get(k), (String) group.get(1) + ends.get(k));
          done++;
        }
      }
      result.add(Integer.valueOf(done));
    } catch (Exception e) {
      result.add(Integer.valueOf(done));
      result.add(e.getClass().getName());
      result.add(String.valueOf(e.getMessage()));
    }
    return result;
  }

  /**
   * Renames.
   *
   * @param settles whether the file's number tells afterwards what became of a request without answer
   */
  private Object rename(Path source, Path dest, boolean replace, boolean settles) throws IOException {
    FileStatus before = settles ? fs.getFileStatus(source) : null;
    try {
      renames.rename(source, dest, replace);
    } catch (IOException e) {
      if (before == null || !hasArrived(before, source, dest, e)) {
        throw e;
      }
    }
    return Boolean.TRUE;
  }

  /** Tells what became of a rename that failed, and whose source was there before. */
  private boolean hasArrived(FileStatus before, Path source, Path dest, IOException error)
      throws IOException {
    Long id = fileId(before);
    if (id != null) {
      return id.equals(fileIdAt(dest));
    }
    if (error instanceof FileNotFoundException && !isThere(source) && isThere(dest)) {
      throw new InterruptedIOException(
          source + " is gone, and " + dest + " is there: by this request or another's");
    }
    return false;
  }

  private Long fileIdAt(Path path) {
    try {
      return fileId(fs.getFileStatus(path));
    } catch (IOException e) {
      return null;
    }
  }

  /** Returns the number that a file keeps when it is renamed, null if its class shows none. */
  static Long fileId(FileStatus status) {
    try {
      Method method = status.getClass().getMethod("getFileId", new Class[0]);
      method.setAccessible(true);
      Number found = (Number) method.invoke(status, new Object[0]);
      return found == null || found.longValue() <= 0 ? null : Long.valueOf(found.longValue());
    } catch (Exception e) {
      return null;
    }
  }

  private List list(Path path) throws IOException {
    List entries = new ArrayList();
    RemoteIterator found = fs.listStatusIterator(path);
    while (found.hasNext()) {
      FileStatus status = (FileStatus) found.next();
      if (entries.isEmpty() && status.isFile() && isSame(status.getPath(), path)) {
        throw new PathIsDirectoryException(path + " is a file");
      }
      entries.add(facts(status));
    }
    return entries;
  }

  private static boolean isSame(Path one, Path other) {
    return one.toUri().getPath().equals(other.toUri().getPath());
  }

  private List facts(FileStatus status) {
    List facts = new ArrayList();
    facts.add(status.getPath().getName());
    facts.add(status.isDirectory() ? "d" : status.isFile() ? "f" : "o");
    facts.add(Long.valueOf(status.isDirectory() ? 0 : status.getLen()));
    facts.add(Long.valueOf(status.getModificationTime()));
    facts.add(status instanceof EtagSource ? ((EtagSource) status).getEtag() : null);
    facts.add(owner(status));
    return facts;
  }

  /** Returns the owner; null where owners prove nothing, or if a local file has gone meanwhile. */
  private String owner(FileStatus status) {
    if (!OWNERS.contains(fs.getUri().getScheme())) {
      return null; // a local filesystem would start a process for each file
    }
    try {
      return status.getOwner();
    } catch (RuntimeException e) { // of that process, behind a view
      return null;
    }
  }

  private String get(Path path, long limit) throws IOException {
    if (!isHdfs() && fs.getFileStatus(path).isDirectory()) { // HDFS opens no directory
      throw new PathIsDirectoryException(path.toString());
    }
    ByteArrayOutputStream data = new ByteArrayOutputStream(FIRST);
    byte[] piece = new byte[FIRST];
    InputStream in = fs.open(path);
    try {
      for (int n = in.read(piece); n >= 0; n = in.read(piece)) {
        data.write(piece, 0, n);
        if (data.size() > limit) {
          throw new IOException("holds more than " + limit + " bytes");
        }
      }
    } finally {
      IOUtils.closeStream(in);
    }
    return Base64.getEncoder().encodeToString(data.toByteArray());
  }

  private List put(Path path, byte[] data, Path temp, boolean replace) throws IOException {
    FSDataOutputStream out = create(temp);
    try {
      out.write(data);
      close(out);
      out = null;
    } finally {
      takeBack(out, temp);
    }
    return land(temp, path, replace);
  }

  private List copy(Path source, Path dest, Path temp, boolean replace) throws IOException {
    if (fs.getFileStatus(source).isDirectory()) {
      throw new PathIsDirectoryException(source.toString());
    }
    InputStream in = fs.open(source);
    try {
      FSDataOutputStream out = create(temp);
      try {
        IOUtils.copyBytes(in, out, PIECE, false);
        close(out);
        out = null;
      } finally {
        takeBack(out, temp);
      }
    } finally {
      IOUtils.closeStream(in);
    }
    return land(temp, dest, replace);
  }

  /** Makes an empty file in a directory that must be there. */
  private FSDataOutputStream create(Path temp) throws IOException {
    if ("hdfs".equals(fs.getUri().getScheme())) {
      short replication = fs.getDefaultReplication(temp);
      return fs.createNonRecursive(
          temp, false, FIRST, replication, fs.getDefaultBlockSize(temp), null);
    }
    if (!fs.getFileStatus(temp.getParent()).isDirectory()) {
      throw new FileNotFoundException(temp.getParent() + " (is not a directory)");
    }
    return fs.create(temp, false);
  }

  private static void close(FSDataOutputStream out) throws IOException {
    if (out.hasCapability("hsync")) {
      out.hsync();
    }
    out.close();
  }

  private void takeBack(FSDataOutputStream out, Path temp) {
    if (out != null) {
      IOUtils.closeStream(out);
      remove(temp);
    }
  }

  private void remove(Path temp) {
    try {
      fs.delete(temp, true);
    } catch (IOException e) {
      return; // the first error tells more
    }
  }

  /**
   * Renames what was written aside. Nobody else does: once it is gone, it has arrived, or what is there
   * is another's and nobody knows.
   */
  private List land(Path temp, Path dest, boolean replace) throws IOException {
    FileStatus written = fs.getFileStatus(temp);
    Long id = fileId(written);
    try {
      renames.rename(temp, dest, replace);
    } catch (IOException e) {
      if (id == null || !id.equals(fileIdAt(dest))) {
        remove(temp);
        throw e;
      }
    }
    List facts = facts(written);
    facts.set(0, dest.getName());
    return facts;
  }

  private Object mkdirs(Path path) throws IOException {
    if (!fs.mkdirs(path)) {
      throw new FileAlreadyExistsException(path + " cannot be made a directory");
    }
    return Boolean.TRUE;
  }

  /** Makes a directory that only its owner may enter, unless it exists. */
  private Object makePrivate(Path path) throws IOException {
    mkdirs(path.getParent());
    if (!fs.mkdirs(path, new FsPermission((short) 0700))) {
      throw new FileAlreadyExistsException(path + " cannot be made a directory");
    }
    return Boolean.TRUE;
  }

  /** Makes a directory aside and renames it, which only one of many can do. */
  private Object mkdirNew(Path path, Path temp) throws IOException {
    try {
      mkdirs(path.getParent());
    } catch (FileAlreadyExistsException e) {
      throw new PathIsDirectoryException(path.getParent() + " is a file");
    }
    mkdirs(temp);
    land(temp, path, false);
    Path inside = new Path(path, temp.getName());
    if (!renames.isAtomic() && fileIdAt(path) == null && isThere(inside)) {
      fs.delete(inside, true); // an old rename moves into a directory that came in between
      throw new FileAlreadyExistsException(path.toString());
    }
    return Boolean.TRUE;
  }

  /**
   * Tells whether a rename is refused. HDFS compares permissions and encryption zones before it looks
   * for the directory of the destination, which is missing here. Elsewhere an empty hidden file is
   * renamed, and deleted.
   */
  private Object tryRename(Path temp, Path landed) throws IOException {
    if (isHdfs()) {
      try {
        renames.rename(temp.getParent(), new Path(landed, "x"), false);
      } catch (FileNotFoundException e) {
        // of the directory that is missing
      }
      return Boolean.TRUE;
    }
    create(temp).close();
    try {
      renames.rename(temp, landed, false);
    } finally {
      remove(temp);
      remove(landed);
    }
    return Boolean.TRUE;
  }

  private boolean isHdfs() {
    return NAMENODES.contains(fs.getUri().getScheme());
  }

  /** Returns quota and use of names, then of space. */
  private List quotas(Path path) throws IOException {
    QuotaUsage use = fs.getQuotaUsage(path);
    List found = new ArrayList();
    found.add(Long.valueOf(use.getQuota()));
    found.add(Long.valueOf(use.getFileAndDirectoryCount()));
    found.add(Long.valueOf(use.getSpaceQuota()));
    found.add(Long.valueOf(use.getSpaceConsumed()));
    return found;
  }

  private boolean isThere(Path path) throws IOException {
    try {
      fs.getFileStatus(path);
      return true;
    } catch (FileNotFoundException e) {
      return false;
    }
  }
}
