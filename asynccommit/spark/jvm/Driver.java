package org.asynccommit.spark;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.Map;
import org.apache.spark.sql.execution.QueryExecutionException;

/** The way to the engine: one JSON text there, one JSON text back. */
final class Driver {
  private Driver() {}

  /** The engine did not answer; whether it has committed is not known. */
  static final class NoAnswer extends Exception {
    NoAnswer(String message, Throwable cause) {
      super(message, cause);
    }
  }

  /** Another process has set up this very job, so what is there is not this job's to delete. */
  static final class Taken extends QueryExecutionException {
    Taken(String message) {
      super(message, null);
    }
  }

  /**
   * Asks the engine for something, and returns its reply. Throws QueryExecutionException with its words
   * if it says no.
   */
  static Map ask(Engine engine, Map request)
      throws IOException, NoAnswer, QueryExecutionException {
    request.put("build", Keys.BUILD);
    ObjectMapper mapper = new ObjectMapper();
    String text = engine.ask(mapper.writeValueAsString(request));
    Map reply = (Map) mapper.readValue(text, Map.class);
    boolean begins = "check".equals(request.get("what")); // later nothing may look refused
    if (!Boolean.TRUE.equals(reply.get("ok"))) {
      String said = String.valueOf(reply.get("error"));
      if ("JobTakenError".equals(reply.get("kind"))) {
        throw new Taken(said);
      }
      throw refusal(said);
    }
    if (begins && !Keys.BUILD.equals(reply.get("build"))) {
      throw refusal(
          "asynccommit: the jar of this session is of asynccommit " + Keys.BUILD
              + ", and its Python has another: start Spark with the jar that asynccommit spark-conf"
              + " writes, of the same environment");
    }
    return reply;
  }

  /**
   * Returns an exception that reaches the user with this message first: Spark calls RuntimeExceptions
   * from here internal errors, and PySpark shows other checked ones as a Java stack trace.
   */
  static QueryExecutionException refusal(String message) {
    return new QueryExecutionException(message, null);
  }
}
