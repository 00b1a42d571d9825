package org.asynccommit.spark;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;

/**
 * Listings of a directory and of all below it, as many at once as the threads of this JVM allow.
 *
 * <p>What is expected below is listed together with the top; what the listings show besides, as the
 * directories that a writer of its own has made, is listed next, level by level.
 */
final class Listings {
  private static final int THREADS = 32; // of all tasks of an executor
  private static final ThreadPoolExecutor POOL = pool();

  private final FileSystem fs;
  private final Map found = new HashMap();

  Listings(FileSystem fs) {
    this.fs = fs;
  }

  /**
   * Lists everything.
   *
   * @param top a directory that is there
   * @param expected names of directories below it, which need not be there
   */
  void list(Path top, Collection expected) throws IOException {
    Set next = new LinkedHashSet();
    next.add(top);
    for (Iterator names = expected.iterator(); names.hasNext(); ) {
      String[] parts = ((String) names.next()).split("/");
      Path at = top;
      for (int i = 0; i < parts.length; i++) {
        if (parts[i].length() > 0) {
          at = ManifestFile.below(at, parts[i]);
          next.add(at);
        }
      }
    }
    for (boolean expect = true; !next.isEmpty(); expect = false) {
      listAll(new ArrayList(next), expect);
      next = unlisted(next);
    }
    if (of(top) == null) {
      throw new FileNotFoundException("there is no directory " + top);
    }
  }

  /** Returns the status of each entry of a directory, in its order; null if it is not there. */
  List of(Path directory) {
    return (List) found.get(directory.toUri().getPath());
  }

  /** Begins something beside what the caller does. */
  static Future submit(Callable work) {
    return POOL.submit(work);
  }

  /** Returns the result of something that was begun. */
  static Object wait(Future begun) throws IOException {
    try {
      return begun.get();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw (IOException) new InterruptedIOException("the task was interrupted").initCause(e);
    } catch (ExecutionException e) {
      if (e.getCause() instanceof IOException) {
        throw (IOException) e.getCause();
      }
      throw new IOException(e.getCause());
    }
  }

  private Set unlisted(Collection listed) {
    Set next = new LinkedHashSet();
    for (Iterator each = listed.iterator(); each.hasNext(); ) {
      List entries = of((Path) each.next());
      for (int i = 0; entries != null && i < entries.size(); i++) {
        FileStatus entry = (FileStatus) entries.get(i);
        if (entry.isDirectory() && of(entry.getPath()) == null) {
          next.add(entry.getPath());
        }
      }
    }
    return next;
  }

  /** @param expected whether they need not be there */
  private void listAll(List directories, boolean expected) throws IOException {
    List running = new ArrayList();
    try {
      for (int i = 1; i < directories.size(); i++) {
        running.add(submit(new Listing(fs, (Path) directories.get(i), expected)));
      }
      Path first = (Path) directories.get(0);
      keep(first, new Listing(fs, first, expected).call());
      for (int i = 1; i < directories.size(); i++) {
        keep((Path) directories.get(i), wait((Future) running.get(i - 1)));
      }
    } finally {
      for (int i = 0; i < running.size(); i++) {
        ((Future) running.get(i)).cancel(false); // what has not begun, after a failure
      }
    }
  }

  private void keep(Path directory, Object entries) {
    found.put(directory.toUri().getPath(), entries);
  }

  /** Returns a maker of threads that keep neither the JVM nor a session's classes alive. */
  static ThreadFactory threads(String prefix) {
    return new Named(prefix);
  }

  private static ThreadPoolExecutor pool() {
    ThreadPoolExecutor made =
        new ThreadPoolExecutor(
            THREADS, THREADS, 10, TimeUnit.SECONDS, new LinkedBlockingQueue(), threads("asynccommit-list-"));
    made.allowCoreThreadTimeOut(true);
    return made;
  }

  /** One listing, whole; null if a directory is not there that need not be. */
  private static final class Listing implements Callable {
    private final FileSystem fs;
    private final Path directory;
    private final boolean expected;

    Listing(FileSystem fs, Path directory, boolean expected) {
      this.fs = fs;
      this.directory = directory;
      this.expected = expected;
    }

    public Object call() throws IOException {
      List entries = new ArrayList();
      try {
        RemoteIterator children = fs.listStatusIterator(directory);
        while (children.hasNext()) {
          entries.add(children.next());
        }
      } catch (FileNotFoundException e) {
        if (!expected) {
          throw e;
        }
        return null;
      }
      return entries;
    }
  }

  private static final class Named implements ThreadFactory {
    private final AtomicInteger count = new AtomicInteger();
    private final String prefix;

    Named(String prefix) {
      this.prefix = prefix;
    }

    public Thread newThread(Runnable work) {
      Thread thread = new Thread(work, prefix + count.incrementAndGet());
      thread.setDaemon(true);
      thread.setContextClassLoader(Listings.class.getClassLoader());
      return thread;
    }
  }
}
