package org.asynccommit.spark;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.Map;
import java.util.function.Function;
import org.apache.spark.sql.execution.QueryExecutionException;

/**
 * The way to the Python driver: one JSON text there, one JSON text back.
 *
 * <p>The callback is a JDK interface and hangs in the JVM's system properties, because sessions may
 * load these classes with different class loaders, each with its own static fields.
 */
final class Driver {
  private Driver() {}

  /** Python did not answer; whether it has committed is not known. */
  static final class NoAnswer extends Exception {
    NoAnswer(String message, Throwable cause) {
      super(message, cause);
    }
  }

  /** Asks Python for something. Throws QueryExecutionException with its words if it says no. */
  static void ask(Map request) throws IOException, NoAnswer, QueryExecutionException {
    Object callback = System.getProperties().get(Keys.CALLBACK);
    if (!(callback instanceof Function)) {
      throw refusal(
          "asynccommit: nothing in this driver commits jobs: call"
              + " asynccommit.spark.configure(spark) in the Python process that owns the session");
    }
    ObjectMapper mapper = new ObjectMapper();
    String text = call((Function) callback, mapper.writeValueAsString(request));
    Map reply = (Map) mapper.readValue(text, Map.class);
    if (!Boolean.TRUE.equals(reply.get("ok"))) {
      throw refusal(String.valueOf(reply.get("error")));
    }
  }

  /**
   * Returns an exception that reaches the user with this message first: Spark calls RuntimeExceptions
   * from here internal errors, and PySpark shows other checked ones as a Java stack trace.
   */
  static QueryExecutionException refusal(String message) {
    return new QueryExecutionException(message, null);
  }

  private static String call(Function callback, String request) throws NoAnswer {
    Object reply;
    try {
      reply = callback.apply(request);
    } catch (RuntimeException e) {
      throw new NoAnswer(String.valueOf(e.getMessage()), e);
    }
    if (!(reply instanceof String)) {
      throw new NoAnswer("the answer was " + reply, null);
    }
    return (String) reply;
  }
}
