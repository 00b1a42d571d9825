package org.asynccommit.spark;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.util.ShutdownHookManager;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The file beside the log that says which token the files of one run of a batch have.
 *
 * <p>It is there before the files are, and is made while the batch before it ends its work, so that
 * no batch waits for a request. One that is not needed soon is removed again: a start of the query
 * that finds it has to list the table.
 */
final class Announcement {
  private static final Logger LOG = LoggerFactory.getLogger(Announcement.class);
  private static final long SECONDS = 10; // that one is kept for a batch that does not come
  private static final int PRIORITY = 40; // after Spark's contexts end, before filesystems are closed

  private static final ConcurrentHashMap AHEAD = new ConcurrentHashMap(); // table -> of its next batch
  private static ScheduledThreadPoolExecutor clock = null;

  final String token;
  final Path path;
  private final FileSystem fs;
  private final Configuration conf;
  private final String start;
  private final long batch;
  private Future made = null; // null once it is there

  private Announcement(Path dest, Configuration conf, String start, String query, long batch)
      throws IOException {
    this.fs = dest.getFileSystem(conf);
    this.conf = conf;
    this.start = start;
    this.batch = batch;
    this.token = UUID.randomUUID().toString().substring(0, 18);
    String name = "." + batch + "." + token + "." + query + ".batch"; // as in batch_names.py
    this.path = new Path(new Path(dest, "_spark_metadata"), name);
  }

  /** Returns that of a run which begins. Throws if it cannot be made: then the run may not begin. */
  static Announcement of(Path dest, Configuration conf, String start, String query, long batch)
      throws IOException {
    Announcement ahead = (Announcement) AHEAD.remove(dest);
    if (ahead != null && ahead.batch == batch && ahead.start.equals(start)) {
      try {
        Listings.wait(ahead.made);
        return ahead;
      } catch (IOException e) {
        LOG.debug("{} was not made ahead", ahead.path, e);
      }
    }
    if (ahead != null) {
      ahead.remove();
    }
    Announcement now = new Announcement(dest, conf, start, query, batch);
    now.write("");
    return now;
  }

  /** Begins to make that of the batch which comes next. */
  static void begin(Path dest, Configuration conf, String start, String query, long batch)
      throws IOException {
    final Announcement next = new Announcement(dest, conf, start, query, batch);
    final Path table = dest;
    next.made =
        Listings.submit(
            new Callable() {
              public Object call() throws IOException {
                next.write("");
                return null;
              }
            });
    Object other = AHEAD.put(table, next);
    if (other != null) {
      ((Announcement) other).remove();
    }
    clock()
        .schedule(
            new Runnable() {
              public void run() {
                if (AHEAD.remove(table, next)) {
                  next.removeLater();
                }
              }
            },
            SECONDS,
            TimeUnit.SECONDS);
  }

  /** Removes what was made ahead for a table, by a start that is over. */
  static void forget(Path dest) {
    Announcement ahead = (Announcement) AHEAD.remove(dest);
    if (ahead != null) {
      ahead.remove();
    }
  }

  private static synchronized ScheduledThreadPoolExecutor clock() {
    if (clock == null) {
      clock = new ScheduledThreadPoolExecutor(1, Listings.threads("asynccommit-clock-"));
      Runnable last =
          new Runnable() {
            public void run() {
              for (Iterator each = AHEAD.values().iterator(); each.hasNext(); ) {
                ((Announcement) each.next()).remove();
              }
            }
          };
      ShutdownHookManager.get().addShutdownHook(last, PRIORITY);
    }
    return clock;
  }

  /** Leaves it, with the files that its run has listed. */
  void keep(List files) throws IOException {
    StringBuilder text = new StringBuilder();
    for (Iterator each = new ArrayList(files).iterator(); each.hasNext(); ) {
      text.append(text.length() == 0 ? "" : "\n").append(each.next());
    }
    write(text.toString());
  }

  /** Removes it, if it can be. */
  void remove() {
    try {
      if (made != null) {
        Listings.wait(made);
      }
      fs.delete(path, false);
    } catch (IOException e) {
      LOG.warn("{} stays, so the next start of its query lists the table", path, e);
    }
  }

  private void removeLater() {
    Listings.submit(
        new Callable() {
          public Object call() {
            remove();
            return null;
          }
        });
  }

  private void write(String text) throws IOException {
    byte[] data = text.getBytes(StandardCharsets.UTF_8);
    if (LocalTree.isPlain(fs)) {
      LocalFiles.save(data, new Path(path.getParent(), path.getName() + ".tmp"), path, conf);
      return;
    }
    OutputStream out = fs.create(path, true); // its name is its own: this spares stores a look
    out.write(data);
    out.close(); // not after a failure: it would make an object of what has gone out
  }
}
