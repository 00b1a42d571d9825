package org.asynccommit.spark;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.ParentNotDirectoryException;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathIsNotEmptyDirectoryException;
import org.apache.hadoop.fs.UnresolvedLinkException;
import org.apache.hadoop.fs.UnsupportedFileSystemException;

/**
 * Renames to a path itself, never into a directory there, and over a file only if that is wanted.
 *
 * <p>A filesystem that has a rename with options of its own does that in one request: HDFS, and what
 * derives from it. A view file system is asked through FileContext, which finds the rename of what is
 * mounted. The rest has Hadoop's older rename only: there the destination is looked at first.
 *
 * <p>HDFS itself is asked through its client, by plain paths: to make and check two Path objects takes
 * half as long as the rest of a rename.
 */
final class Renames {
  private static final String HDFS = "org.apache.hadoop.hdfs.DistributedFileSystem";

  private final FileSystem fs;
  private final Method direct;
  private final FileContext context;
  private final Object client;
  private final Method plain;

  Renames(FileSystem fs) {
    this.fs = fs;
    this.direct = direct(fs.getClass());
    this.client = client(fs);
    this.plain = client == null ? null : plain(client.getClass());
    this.context = direct == null && "viewfs".equals(fs.getUri().getScheme()) ? context(fs) : null;
  }

  /** Whether a rename that must not replace is one atomic request. */
  boolean isAtomic() {
    return direct != null || (context != null && isAtomicBelow(fs));
  }

  private static boolean isAtomicBelow(FileSystem view) {
    FileSystem[] mounted = view.getChildFileSystems();
    if (mounted == null || mounted.length == 0) {
      return false;
    }
    for (int i = 0; i < mounted.length; i++) {
      FileSystem one = mounted[i];
      while (one instanceof FilterFileSystem) {
        one = ((FilterFileSystem) one).getRawFileSystem();
      }
      if (direct(one.getClass()) == null) {
        return false;
      }
    }
    return true;
  }

  /** Renames a file or a directory. Throws Hadoop's exceptions, as HDFS does. */
  void rename(Path source, Path dest, boolean replace) throws IOException {
    Options.Rename how = replace ? Options.Rename.OVERWRITE : Options.Rename.NONE;
    if (direct != null) {
      invoke(source, dest, new Options.Rename[] {how});
    } else if (context != null) {
      context.rename(source, dest, new Options.Rename[] {how});
    } else {
      checked(source, dest, replace);
    }
  }

  /** Renames a file, by absolute paths without a scheme, and replaces nothing. */
  void rename(String source, String dest) throws IOException {
    if (plain != null) {
      Object[] arguments = {source, dest, new Options.Rename[] {Options.Rename.NONE}};
      try {
        invoke(plain, client, arguments);
        return;
      } catch (UnresolvedLinkException e) { // behind a symbolic link; the filesystem follows it
      }
    }
    rename(path(source), path(dest), false);
  }

  /** Returns a path with a scheme, so that a colon in the first name is none. */
  Path path(String text) {
    return new Path(fs.getUri().getScheme(), fs.getUri().getAuthority(), text);
  }

  private void invoke(Path source, Path dest, Options.Rename[] how) throws IOException {
    invoke(direct, fs, new Object[] {source, dest, how});
  }

  private static void invoke(Method method, Object on, Object[] arguments) throws IOException {
    try {
      method.invoke(on, arguments);
    } catch (IllegalAccessException e) {
      throw new IOException(e);
    } catch (InvocationTargetException e) {
      Throwable why = e.getCause();
      if (why instanceof IOException) {
        throw (IOException) why;
      }
      if (why instanceof RuntimeException) {
        throw (RuntimeException) why;
      }
      throw new IOException(why);
    }
  }

  private void checked(Path source, Path dest, boolean replace) throws IOException {
    FileStatus from = fs.getFileStatus(source);
    if (dest.toUri().getPath().startsWith(source.toUri().getPath() + "/")) {
      throw new IOException(dest + " is a directory or file under source " + source);
    }
    FileStatus to = status(dest);
    if (to == null) {
      refuseWithoutParent(dest);
    } else if (!replace) {
      throw new FileAlreadyExistsException("rename destination " + dest + " already exists");
    } else {
      makeRoom(from, to);
    }
    if (!fs.rename(source, dest)) {
      fs.getFileStatus(source);
      if (status(dest) != null) {
        throw new FileAlreadyExistsException("rename destination " + dest + " already exists");
      }
      throw new IOException("the filesystem refuses to rename " + source + " to " + dest);
    }
  }

  private void makeRoom(FileStatus from, FileStatus to) throws IOException {
    if (from.isDirectory() != to.isDirectory()) {
      throw new IOException(
          "source and destination " + to.getPath() + " must both be directories, or must both be files");
    }
    if (to.isDirectory() && fs.listStatusIterator(to.getPath()).hasNext()) {
      throw new PathIsNotEmptyDirectoryException(to.getPath().toString());
    }
    fs.delete(to.getPath(), false);
  }

  private void refuseWithoutParent(Path dest) throws IOException {
    if (dest.getParent() != null && !fs.getFileStatus(dest.getParent()).isDirectory()) {
      throw new ParentNotDirectoryException(dest.getParent() + " (is not a directory)");
    }
  }

  private FileStatus status(Path path) throws IOException {
    try {
      return fs.getFileStatus(path);
    } catch (FileNotFoundException e) {
      return null;
    }
  }

  /** Returns the rename with options that a class has of its own, null if it has none. */
  private static Method direct(Class kind) {
    Class[] parameters = {Path.class, Path.class, Options.Rename[].class};
    for (Class at = kind; at != null && at != FileSystem.class; at = at.getSuperclass()) {
      if (at == FilterFileSystem.class) {
        return null; // it passes the rename on, past what its subclass does besides
      }
      try {
        Method found = at.getDeclaredMethod("rename", parameters);
        found.setAccessible(true);
        return found;
      } catch (NoSuchMethodException e) {
        continue;
      } catch (RuntimeException e) { // in a module that is closed
        return null;
      }
    }
    return null;
  }

  /** Returns the client of HDFS, null for any other filesystem, and for classes derived from it. */
  private static Object client(FileSystem fs) {
    if (!HDFS.equals(fs.getClass().getName())) {
      return null;
    }
    try {
      return fs.getClass().getMethod("getClient", new Class[0]).invoke(fs, new Object[0]);
    } catch (Exception e) { // of a version that shows none
      return null;
    }
  }

  private static Method plain(Class kind) {
    Class[] parameters = {String.class, String.class, Options.Rename[].class};
    try {
      return kind.getMethod("rename", parameters);
    } catch (NoSuchMethodException e) {
      return null;
    }
  }

  private static FileContext context(FileSystem fs) {
    try {
      return FileContext.getFileContext(fs.getUri(), fs.getConf());
    } catch (UnsupportedFileSystemException e) {
      return null;
    }
  }
}
