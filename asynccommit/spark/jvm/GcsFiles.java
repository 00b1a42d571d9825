package org.asynccommit.spark;

import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.URI;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What Google's connector knows and Hadoop's interface has no words for: all objects below a
 * directory in one listing, and which version each of them is.
 *
 * <p>Asked for by name, because the connector comes with the session and its own classes have other
 * names in each of its jars.
 */
final class GcsFiles {
  private static final Logger LOG = LoggerFactory.getLogger(GcsFiles.class);
  private static final Class[] NOTHING = new Class[0];

  /** Its place below the directory, which ends in a slash if it only stands for a directory. */
  final String name;

  final long size;

  /** As Python's store has it, generation and checksum; null if it was not told. */
  final String etag;

  private GcsFiles(String name, long size, String etag) {
    this.name = name;
    this.size = size;
    this.etag = etag;
  }

  /** Returns what is below a directory, null if the connector is not one that tells. */
  static List below(FileSystem fs, Path directory) throws IOException {
    try {
      URI path = (URI) ask(fs, "getGcsPath", new Class[] {Path.class}, new Object[] {directory});
      URI prefix = URI.create(path + "/");
      int start = prefix.getPath().length() - 1; // names of objects begin without a slash
      Object files = ask(fs, "getGcsFs", NOTHING, null);
      Class[] types = {URI.class};
      Object[] values = {prefix};
      Iterator each = ((List) ask(files, "listFileInfoForPrefix", types, values)).iterator();
      List found = new ArrayList();
      while (each.hasNext()) {
        Object file = each.next();
        Object item = ask(file, "getItemInfo", NOTHING, null);
        String name = ((String) ask(item, "getObjectName", NOTHING, null)).substring(start);
        if (name.length() > 0) {
          long size = ((Long) ask(item, "getSize", NOTHING, null)).longValue();
          found.add(new GcsFiles(name, size, etag(file, item)));
        }
      }
      return found;
    } catch (ReflectiveOperationException e) {
      LOG.debug("{} has no such listing", fs.getClass().getName(), e);
    } catch (RuntimeException e) {
      LOG.debug("{} has no such listing", fs.getClass().getName(), e);
    }
    return null;
  }

  private static String etag(Object file, Object item)
      throws ReflectiveOperationException, IOException {
    long generation = ((Long) ask(item, "getContentGeneration", NOTHING, null)).longValue();
    byte[] crc32c = (byte[]) ask(file, "getCrc32cChecksum", NOTHING, null);
    if (generation <= 0) {
      return null;
    }
    StringBuilder text = new StringBuilder(Long.toString(generation));
    if (crc32c != null && crc32c.length == 4) {
      text.append('-');
      for (int i = 0; i < crc32c.length; i++) {
        text.append(Character.forDigit((crc32c[i] >> 4) & 15, 16));
        text.append(Character.forDigit(crc32c[i] & 15, 16));
      }
    }
    return text.toString();
  }

  /** Calls a method, public or not. */
  private static Object ask(Object whom, String what, Class[] types, Object[] values)
      throws ReflectiveOperationException, IOException {
    Method method = find(whom.getClass(), what, types);
    method.setAccessible(true);
    try {
      return method.invoke(whom, values);
    } catch (InvocationTargetException e) {
      if (e.getCause() instanceof IOException) {
        throw (IOException) e.getCause();
      }
      throw e;
    }
  }

  private static Method find(Class of, String what, Class[] types) throws NoSuchMethodException {
    try {
      return of.getMethod(what, types);
    } catch (NoSuchMethodException e) {
      return of.getDeclaredMethod(what, types);
    }
  }
}
