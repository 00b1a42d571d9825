package org.asynccommit.spark;

import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** One run of a batch, as the driver's JVM tells Python of it. */
final class StreamBatch {
  private static final Logger LOG = LoggerFactory.getLogger(StreamBatch.class);
  static final String QUERY = "sql.streaming.queryId";
  private static final String RUN = "spark.jobGroup.id"; // the id of one start of the query
  private static final String DESCRIPTION = "spark.job.description";

  final String token;
  private final Path dest;
  private final long batch;
  private final String query;
  private final Configuration conf;
  private final Engine engine;

  StreamBatch(Path dest, long batch, String token, Configuration conf) throws Exception {
    this.dest = dest;
    this.batch = batch;
    this.token = token;
    this.conf = conf;
    this.engine = Engine.forJob();
    this.query = local(QUERY, "unnamed");
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

  /** Says that the log has the batch. */
  void end(List files, boolean again) {
    try {
      Map request = request("end");
      request.put("again", Boolean.valueOf(again));
      if (again) {
        request.put("files", files);
      }
      Driver.ask(engine, request);
    } catch (Exception e) { // it is committed
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
    request.put("run", local(RUN, ""));
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
