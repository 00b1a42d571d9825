package org.asynccommit.spark;

import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.util.concurrent.Callable;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.EtagSource;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.IOUtils;

/** What the protocol asks of a filesystem, with the cares that Hadoop's interface leaves open. */
final class Disk {
  static final int TRIES = 5;
  private static final int LIMIT = 64 * 1024 * 1024;

  final FileSystem fs;
  private final Configuration conf;
  final boolean local;
  private final boolean known; // of a scheme whose store in Python has etags of the service

  /** Whether a file needs no directory, and is there as a whole or not at all. */
  final boolean objects;

  Disk(FileSystem fs, Configuration conf) {
    this.fs = fs;
    this.conf = conf;
    String scheme = fs.getUri().getScheme();
    this.local = "file".equals(scheme);
    this.known = "gs".equals(scheme) || scheme.startsWith("abfs");
    this.objects = "gs".equals(fs.getUri().getScheme());
  }

  /** Makes a directory and its parents, again if another job's cleanup took a parent away. */
  void mkdirs(Path path) throws IOException {
    IOException last = null;
    for (int i = 0; i < TRIES; i++) {
      try {
        if (make(path)) {
          return;
        }
      } catch (FileNotFoundException e) {
        last = e;
      } catch (NoSuchFileException e) {
        last = e;
      } catch (FileSystemException e) {
        throw new IOException("cannot make the directory " + path + why(path), e);
      }
    }
    throw new IOException("cannot make the directory " + path + why(path), last);
  }

  private boolean make(Path path) throws IOException {
    if (local && LocalTree.isPlain(fs)) {
      LocalFiles.mkdirs(path, conf);
      return true;
    }
    return fs.mkdirs(path);
  }

  /** Returns why a directory cannot be made, as far as the place that it belongs to tells. */
  private String why(Path path) {
    for (Path above = path.getParent(); above != null; above = above.getParent()) {
      try {
        FileStatus found = fs.getFileStatus(above);
        if (!found.isDirectory()) {
          return ": " + above + " is a file";
        }
        String rights = found.getPermission() + " " + found.getOwner() + ":" + found.getGroup();
        return ": no permission to write, or no space, in " + above + " (" + rights + ")";
      } catch (FileNotFoundException e) {
        continue;
      } catch (IOException e) {
        return ": " + above + " cannot be read: " + e.getMessage();
      }
    }
    return "";
  }

  /**
   * Makes a directory that must not be there, and its parents. Only a local disk is asked that in one
   * request: Hadoop's interface has none, and the ids that Spark gives its attempts are used once.
   */
  void mkdirNew(Path path) throws IOException {
    mkdirs(local ? path.getParent() : path);
    if (local) {
      LocalFiles.mkdirNew(path, conf);
    }
  }

  /** Waits a while, longer from time to time; an interrupted thread does not wait. */
  void pause(int time) {
    try {
      Thread.sleep((long) ((50L << Math.min(time, 6)) * (0.5 + Math.random() / 2)));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Deletes a directory with all it holds, again while stragglers still write to it. */
  void deleteTree(Path path) throws IOException {
    for (int i = 0; i < TRIES; i++) {
      fs.delete(path, true); // answers false, or throws, if something came in between
      if (!exists(path)) {
        return;
      }
      pause(i);
    }
  }

  /** Removes a directory if nothing is in it; never anything else. */
  void removeIfEmpty(Path path) throws IOException {
    if (local) { // Hadoop's local delete lists first, then deletes whatever is there by then
      File file = new File(path.toUri().getPath());
      if (file.isDirectory()) {
        try {
          Files.deleteIfExists(file.toPath());
        } catch (DirectoryNotEmptyException e) {
          return;
        }
      }
      return;
    }
    try {
      if (fs.listStatus(path).length == 0) {
        fs.delete(path, false);
      }
    } catch (FileNotFoundException e) {
      return;
    }
  }

  /**
   * Removes what a job has left of its directories if nothing is in them. The last act of whoever
   * deletes there: of an abort and a straggler that delete at once, the later one finds them empty.
   */
  void removeEmpty(Layout layout, boolean jobMadeDest) throws IOException {
    removeIfEmpty(layout.tasks);
    removeIfEmpty(layout.absolute);
    removeIfEmpty(layout.manifests);
    removeIfEmpty(layout.attemptDir);
    removeIfEmpty(layout.jobDir);
    removeIfEmpty(layout.temporary);
    if (jobMadeDest) {
      removeIfEmpty(layout.dest);
    }
  }

  /** Returns what is at a path, null if nothing is. */
  FileStatus status(Path path) throws IOException {
    try {
      return fs.getFileStatus(path);
    } catch (FileNotFoundException e) {
      return null;
    }
  }

  boolean exists(Path path) throws IOException {
    return status(path) != null;
  }

  /** Returns the bytes of a small file, null if there is no file. */
  byte[] read(Path path) throws IOException {
    FileStatus status = status(path);
    if (status == null || !status.isFile() || status.getLen() > LIMIT) {
      return null;
    }
    byte[] data = new byte[(int) status.getLen()];
    FSDataInputStream in = fs.open(path);
    try {
      in.readFully(0, data);
    } finally {
      IOUtils.closeStream(in);
    }
    return data;
  }

  /** Writes a file whole: readers of {@code path} see the old one or the new one. */
  void save(byte[] data, Path temp, Path path) throws IOException {
    save(data, temp, path, objects ? null : status(path));
  }

  /**
   * Does the same.
   *
   * @param there what was seen at {@code path}, null if nothing was
   */
  void save(byte[] data, Path temp, Path path, FileStatus there) throws IOException {
    if (objects) {
      OutputStream out = fs.create(path, true);
      out.write(data);
      out.close(); // not after a failure: it would make an object of what has gone out
      return;
    }
    boolean replaces = there != null && !there.isDirectory();
    if (there != null && there.isDirectory()) {
      fs.delete(path, true);
    }
    if (local) {
      LocalFiles.save(data, temp, path, conf);
      return;
    }
    OutputStream out = fs.create(temp, true);
    try {
      out.write(data);
    } finally {
      out.close();
    }
    if (replaces) { // FileSystem.rename would refuse
      new Renames(fs).rename(temp, path, true);
    } else if (!fs.rename(temp, path)) {
      throw new IOException("cannot rename " + temp + " to " + path);
    }
  }

  /** Begins to look at a path, beside other requests; {@link Listings#wait} has the status. */
  Future look(Path path) {
    return Listings.submit(new Look(this, path));
  }

  private static final class Look implements Callable {
    private final Disk disk;
    private final Path path;

    Look(Disk disk, Path path) {
      this.disk = disk;
      this.path = path;
    }

    public Object call() throws IOException {
      return disk.status(path);
    }
  }

  /** Begins to make a directory, beside other requests; {@link Listings#wait} tells of errors. */
  Future begin(final Path directory) {
    return Listings.submit(
        new Callable() {
          public Object call() throws IOException {
            mkdirs(directory);
            return null;
          }
        });
  }

  /** Returns what tells this file from another of its name and size, null if nothing does. */
  String etag(FileStatus status) {
    if (local) {
      return LocalFiles.etag(status.getPath());
    }
    if (status instanceof EtagSource) {
      return ((EtagSource) status).getEtag();
    }
    if (!known) { // as Python's stores make it
      String time = Long.toHexString(status.getModificationTime());
      return time + "-" + Long.toHexString(status.getLen());
    }
    return null;
  }

  /** Has a new directory outlive a power cut, with those above it down from {@code top}. */
  void settle(Path directory, Path top) throws IOException {
    if (!local) {
      return;
    }
    for (Path at = directory; at != null && !at.equals(top); at = at.getParent()) {
      LocalFiles.sync(at);
    }
    LocalFiles.sync(top);
  }
}
