package org.asynccommit.spark;

import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One run of a batch in the driver. Python is asked at the first batch of each start of a query, which
 * may not be that of the log, and after it, to delete what earlier starts have left.
 */
final class StreamBatch {
  private static final Logger LOG = LoggerFactory.getLogger(StreamBatch.class);
  static final String QUERY = "sql.streaming.queryId";
  static final String RUN = "spark.jobGroup.id"; // the id of one start of the query
  private static final String DESCRIPTION = "spark.job.description";

  private static final Set CHECKED = ConcurrentHashMap.newKeySet(); // starts that the log belongs to
  private static final Set ENDED = ConcurrentHashMap.newKeySet(); // those that have ended a batch
  private static final Set SETTLED = ConcurrentHashMap.newKeySet(); // and found nothing more to delete

  private final Path dest;
  private final long batch;
  private final String query;
  private final Configuration conf;
  private final String start;
  private final String place;
  private final long begun = System.nanoTime();
  private Announcement announced = null;

  StreamBatch(Path dest, long batch, Configuration conf) {
    this.dest = dest;
    this.batch = batch;
    this.conf = conf;
    this.query = local(QUERY, "unnamed");
    this.start = local(RUN, "");
    this.place = start + " " + dest;
  }

  private static String local(String key, String other) {
    String found = SparkContext.getOrCreate().getLocalProperty(key);
    return found == null ? other : found;
  }

  /** Refuses a query that the log does not belong to. */
  void check() throws Exception {
    if (CHECKED.contains(place)) {
      return;
    }
    Announcement.forget(dest);
    Engine engine = Engine.forJob();
    try {
      Driver.ask(engine, request("check"));
    } catch (Driver.NoAnswer e) {
      throw Driver.refusal(
          "asynccommit: no answer from " + engine.name() + ", so batch " + batch + " of " + dest
              + " was not begun: " + e.getMessage());
    }
    CHECKED.add(place);
  }

  /** Announces the names that this run will give, or refuses it. */
  Announcement begin() throws Exception {
    check();
    announced = Announcement.of(dest, conf, start, query, batch);
    return announced;
  }

  /**
   * Says that the log has the batch: beside what the query does next, but for the first batch of a
   * start, after which it is waited for what earlier starts have left.
   */
  void end(List files, long bytes, boolean again) {
    Map told = described();
    told.put("files", Integer.valueOf(files.size()));
    told.put("bytes", Long.valueOf(bytes));
    told.put("seconds", Double.valueOf((System.nanoTime() - begun) / 1e9));
    Telling.of(told);
    try {
      final List listed = again ? files : null;
      Listings.submit(
          new Callable() {
            public Object call() throws IOException {
              withdraw(listed);
              return null;
            }
          });
      Announcement.begin(dest, conf, start, query, batch + 1);
      if (!SETTLED.contains(place)) {
        settle();
      }
    } catch (Exception e) { // it is committed
      LOG.warn("Batch {} of {} is in the log, but was not cleaned up after", batch, dest, e);
    }
  }

  private void withdraw(List files) throws IOException {
    if (files == null) {
      announced.remove();
    } else {
      announced.keep(files);
    }
  }

  private void settle() throws IOException {
    final Map request = request("end");
    Future said =
        Listings.submit(
            new Callable() {
              public Object call() {
                tell(request);
                return null;
              }
            });
    if (ENDED.add(place)) {
      Listings.wait(said);
    }
  }

  private void tell(Map request) {
    try {
      Map reply = Driver.ask(Engine.forJob(), request);
      if (Boolean.TRUE.equals(reply.get("settled"))) {
        SETTLED.add(place);
      }
    } catch (Exception e) {
      LOG.warn("Batch {} of {} is in the log, but was not cleaned up after", batch, dest, e);
    }
  }

  /** Has the files of a batch that failed deleted, unless the log lists them or may yet. */
  void abort(List files, boolean sent) {
    try {
      Map request = request("abort");
      request.put("files", files);
      request.put("sent", Boolean.valueOf(sent));
      Driver.ask(Engine.forJob(), request);
    } catch (Exception e) {
      LOG.warn("Batch {} of {} failed; its next run deletes its files", batch, dest, e);
    }
  }

  private Map described() {
    Map said = new LinkedHashMap();
    said.put("dest", dest.toUri().toString());
    said.put("batch", Long.valueOf(batch));
    said.put("query", query);
    said.put("description", local(DESCRIPTION, ""));
    return said;
  }

  private Map request(String step) throws IOException {
    Map request = described();
    request.put("version", Integer.valueOf(1));
    request.put("what", "stream");
    request.put("step", step);
    if (announced != null) {
      request.put("token", announced.token);
    }
    request.put("run", start);
    request.put("conf", Keys.userOptions(conf));
    request.put("storage", Keys.storageOptions(conf, dest));
    request.put("hadoopUser", Filesystems.userNow());
    String user = Engine.otherUser();
    if (user != null) {
      request.put("actsAs", user);
    }
    return request;
  }
}
