package org.asynccommit.spark;

import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.unsafe.Platform;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Asks before the first batch of each start of a query whether the log of its file sink is its own.
 *
 * <p>The sink takes a batch whose number is in its log for committed, whichever query wrote it, and
 * then makes no protocol at all. A rule of the optimizer sees each batch before the sink does, and
 * what it throws fails the query. It changes no plan.
 */
public final class StreamGuard extends Rule {
  private static final Logger LOG = LoggerFactory.getLogger(StreamGuard.class);
  private static final Set CHECKED = ConcurrentHashMap.newKeySet(); // starts of queries
  private static final String BATCH = "streaming.sql.batchId";
  private static final String KEY = "spark.sql.streaming.commitProtocolClass";
  private static final String PREFIX = "FileSink["; // as FileStreamSink says of itself

  /** Adds this rule to those of a session, and of those that queries make of it. */
  public static void install(ExperimentalMethods session) {
    java.util.LinkedList found = new java.util.LinkedList();
    scala.collection.Iterator each = session.extraOptimizations().iterator();
    while (each.hasNext()) {
      Object rule = each.next();
      if (!rule.getClass().getName().equals(StreamGuard.class.getName())) {
        found.addFirst(rule);
      }
    }
    found.addFirst(new StreamGuard());
    scala.collection.immutable.List rules = scala.collection.immutable.Nil$.MODULE$;
    for (java.util.Iterator last = found.iterator(); last.hasNext(); ) {
      rules = rules.$colon$colon(last.next()); // Janino cannot call += of Scala 2.12's buffers
    }
    session.extraOptimizations_$eq(rules);
  }

  public TreeNode apply(TreeNode plan) {
    SparkContext context = SparkContext.getOrCreate();
    String query = context.getLocalProperty(StreamBatch.QUERY);
    String batch = context.getLocalProperty(BATCH);
    String start = context.getLocalProperty(StreamBatch.RUN);
    if (query != null && batch != null && start != null && !CHECKED.contains(start)) {
      try {
        check(sinkOf(query), Long.parseLong(batch));
        CHECKED.add(start);
      } catch (Exception e) {
        Platform.throwException(e);
      }
    }
    return plan;
  }

  /** Returns what the sink of a query says of itself, empty if it cannot be found. */
  private static String sinkOf(String query) {
    try {
      Object shared = get(SparkSession.active(), "sharedState");
      Object found = ((Map) get(shared, "activeStreamingQueries")).get(UUID.fromString(query));
      return found == null ? "" : String.valueOf(get(found, "sink"));
    } catch (Exception e) { // of a vendor's Spark: the protocol itself looks, too, if it is asked
      LOG.debug("The sink of query {} is not known before its batches", query, e);
      return "";
    }
  }

  private static Object get(Object from, String name) throws Exception {
    return from.getClass().getMethod(name, new Class[0]).invoke(from, new Object[0]);
  }

  private static void check(String sink, long batch) throws Exception {
    boolean ours =
        AsyncCommitStreamProtocol.class.getName().equals(SQLConf.get().getConfString(KEY, ""));
    if (!ours || !sink.startsWith(PREFIX)) {
      return;
    }
    Path dest = new Path(sink.substring(PREFIX.length(), sink.length() - 1));
    Configuration conf = new Configuration(SparkContext.getOrCreate().hadoopConfiguration());
    scala.collection.Iterator each = SQLConf.get().getAllConfs().iterator();
    while (each.hasNext()) {
      scala.Tuple2 one = (scala.Tuple2) each.next();
      conf.set((String) one._1(), (String) one._2());
    }
    FileSystem fs = dest.getFileSystem(conf);
    if (Support.decide(fs, dest.toString())) {
      new StreamBatch(fs.makeQualified(dest), batch, conf).check();
    }
  }
}
