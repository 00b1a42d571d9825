package org.asynccommit.spark;

import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.permission.FsPermission;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What Hadoop's local filesystem does not do: tell a file's identity, and outlive a power cut. */
final class LocalFiles {
  private static final Logger LOG = LoggerFactory.getLogger(LocalFiles.class);

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

  /** Makes a directory. Throws if anything is there. */
  static void mkdirNew(org.apache.hadoop.fs.Path path) throws IOException {
    try {
      Files.createDirectory(of(path));
    } catch (FileAlreadyExistsException e) {
      throw new IOException("this task attempt is there already: " + path, e);
    }
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
