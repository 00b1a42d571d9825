package org.asynccommit.spark;

import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.permission.FsPermission;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What Hadoop's local filesystem does not do: tell a file's identity, and outlive a power cut. */
final class LocalFiles {
  private static final Logger LOG = LoggerFactory.getLogger(LocalFiles.class);

  private static final String MODE = "unix:mode";

  private LocalFiles() {}

  /** Returns the etag that Python's store gives this file; null where Java cannot tell it. */
  static String etag(org.apache.hadoop.fs.Path path) {
    try {
      Map look = LocalTree.look(of(path));
      return look == null ? null : LocalTree.etag(look);
    } catch (IOException e) {
      LOG.debug("no etag for {}", path, e);
    } catch (RuntimeException e) { // no such attributes, or a name that this locale cannot spell
      LOG.debug("no etag for {}", path, e);
    }
    return null;
  }

  /** Writes {@code temp}, which gets the place of {@code path} once it is on the disk. */
  static void save(
      byte[] data, org.apache.hadoop.fs.Path temp, org.apache.hadoop.fs.Path path, Configuration conf)
      throws IOException {
    Path from = of(temp);
    FileOutputStream out = new FileOutputStream(from.toFile()); // an interrupt does not close it
    try {
      out.write(data);
      out.getFD().sync();
    } finally {
      out.close();
    }
    permit(from, conf);
    Path to = of(path);
    Files.move(from, to, StandardCopyOption.ATOMIC_MOVE);
    Files.deleteIfExists(to.resolveSibling("." + to.getFileName() + ".crc")); // it was another's
    sync(to.getParent());
  }

  /** Makes a directory with Hadoop's permissions. Throws if anything is there. */
  static void mkdirNew(org.apache.hadoop.fs.Path path, Configuration conf) throws IOException {
    try {
      mkdir(of(path), permissions(conf));
    } catch (FileAlreadyExistsException e) {
      throw new IOException("this task attempt is there already: " + path, e);
    }
  }

  /**
   * Makes a directory and its parents with Hadoop's permissions, unless they are there. Without its
   * native library Hadoop starts a process for each, {@code chmod}, which takes milliseconds.
   */
  static void mkdirs(org.apache.hadoop.fs.Path path, Configuration conf) throws IOException {
    mkdirs(of(path), permissions(conf));
  }

  private static void mkdirs(Path path, int permissions) throws IOException {
    Path parent = path.getParent();
    try {
      mkdir(path, permissions);
      return;
    } catch (NoSuchFileException e) {
      if (parent == null || Files.isDirectory(parent, new LinkOption[0])) {
        throw e; // removed meanwhile, or on a filesystem without new directories
      }
    } catch (FileSystemException e) { // of which kind, for one that is there, differs by system
      requireDirectory(path, e);
      return;
    }
    mkdirs(parent, permissions);
    try {
      mkdir(path, permissions);
    } catch (FileSystemException e) {
      requireDirectory(path, e);
    }
  }

  private static void requireDirectory(Path path, FileSystemException otherwise)
      throws FileSystemException {
    if (!Files.isDirectory(path, new LinkOption[0])) {
      throw otherwise;
    }
  }

  /** Makes a directory whose permissions are these, and what it inherits, as setgid. */
  private static void mkdir(Path path, int permissions) throws IOException {
    Files.createDirectory(path, new FileAttribute[0]);
    try {
      int made = ((Integer) Files.getAttribute(path, MODE, new LinkOption[0])).intValue();
      if ((made & 0777) != permissions) {
        Integer mode = Integer.valueOf(made & 07000 | permissions);
        Files.setAttribute(path, MODE, mode, new LinkOption[0]);
      }
    } catch (UnsupportedOperationException e) {
      LOG.debug("{} has no permissions", path, e);
    }
  }

  private static int permissions(Configuration conf) {
    return FsPermission.getDirDefault().applyUMask(FsPermission.getUMask(conf)).toShort();
  }

  /** Has the entries of a directory outlive a power cut, where the system can do that. */
  static void sync(org.apache.hadoop.fs.Path directory) throws IOException {
    sync(of(directory));
  }

  private static void sync(Path directory) throws IOException {
    boolean interrupted = Thread.interrupted(); // it would close the channel
    try {
      FileChannel channel;
      try {
        channel = FileChannel.open(directory, new OpenOption[] {StandardOpenOption.READ});
      } catch (IOException e) { // a directory that may be written to, and not be read
        LOG.debug("{} cannot be synced", directory, e);
        return;
      }
      try {
        channel.force(true);
      } finally {
        channel.close();
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Gives a file the permissions that Hadoop would have given it. */
  private static void permit(Path file, Configuration conf) throws IOException {
    FsPermission wanted = FsPermission.getFileDefault().applyUMask(FsPermission.getUMask(conf));
    try {
      Files.setPosixFilePermissions(file, PosixFilePermissions.fromString(wanted.toString()));
    } catch (UnsupportedOperationException e) {
      LOG.debug("{} has no permissions", file, e);
    }
  }

  private static Path of(org.apache.hadoop.fs.Path path) {
    return new File(path.toUri().getPath()).toPath();
  }
}
