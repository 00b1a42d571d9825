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

/** One run of a batch, as the driver's JVM tells Python of it. */
final class StreamBatch {
  private static final Logger LOG = LoggerFactory.getLogger(StreamBatch.class);
  static final String QUERY = "sql.streaming.queryId";
  static final String RUN = "spark.jobGroup.id"; // the id of one start of the query
  private static final String DESCRIPTION = "spark.job.description";

  private static final Set ENDED = ConcurrentHashMap.newKeySet(); // starts that have ended a batch

  final String token;
  private final Path dest;
  private final long batch;
  private final String query;
  private final Configuration conf;
  private final Engine engine;
  private final String start;

  StreamBatch(Path dest, long batch, String token, Configuration conf) throws Exception {
    this.dest = dest;
    this.batch = batch;
    this.token = token;
    this.conf = conf;
    this.engine = Engine.forJob();
    this.query = local(QUERY, "unnamed");
    this.start = local(RUN, "");
  }

  private static String local(String key, String other) {
    String found = SparkContext.getOrCreate().getLocalProperty(key);
    return found == null ? other : found;
  }

  /** Refuses a query that the log does not belong to. */
  void check() throws Exception {
    require("check");
  }

  /** Announces the names that this run will give, or refuses it; returns the announcement's path. */
  String begin() throws Exception {
    require("begin");
    String name = "." + batch + "." + token + "." + query + ".batch"; // as in batch_names.py
    return new Path(new Path(dest, "_spark_metadata"), name).toString();
  }

  private void require(String step) throws Exception {
    try {
      Driver.ask(engine, request(step));
    } catch (Driver.NoAnswer e) {
      throw Driver.refusal(
          "asynccommit: no answer from " + engine.name() + ", so batch " + batch + " of " + dest
              + " was not begun: " + e.getMessage());
    }
  }

  /**
   * Says that the log has the batch: beside what the query does next, but for the first batch of a
   * start, after which it is waited for what earlier starts have left.
   */
  void end(List files, boolean again) {
    try {
      final Map request = request("end");
      request.put("again", Boolean.valueOf(again));
      if (again) {
        request.put("files", files);
      }
      Future said =
          Listings.submit(
              new Callable() {
                public Object call() {
                  tell(request);
                  return null;
                }
              });
      if (ENDED.add(start + " " + dest)) {
        Listings.wait(said);
      }
    } catch (IOException e) { // it is committed
      LOG.warn("Batch {} of {} is in the log, but was not cleaned up after", batch, dest, e);
    }
  }

  private void tell(Map request) {
    try {
      Driver.ask(engine, request);
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
      Driver.ask(engine, request);
    } catch (Exception e) {
      LOG.warn("Batch {} of {} failed; its next run deletes its files", batch, dest, e);
    }
  }

  private Map request(String step) throws IOException {
    Map request = new LinkedHashMap();
    request.put("version", Integer.valueOf(1));
    request.put("what", "stream");
    request.put("step", step);
    request.put("dest", dest.toUri().toString());
    request.put("batch", Long.valueOf(batch));
    request.put("token", token);
    request.put("query", query);
    request.put("run", start);
    request.put("description", local(DESCRIPTION, ""));
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
