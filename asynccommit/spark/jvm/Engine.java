package org.asynccommit.spark;

import java.io.IOException;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.spark.sql.execution.QueryExecutionException;

/** What commits the jobs of this driver: a process of Python that answers requests. */
abstract class Engine {
  /** What it is, in words. */
  abstract String name();

  /** Sends one JSON text and returns the answer, another one. */
  abstract String ask(String request) throws Driver.NoAnswer;

  /** Returns as whom this session acts, if that is another than the driver's own user. */
  static String otherUser() throws IOException {
    UserGroupInformation user = UserGroupInformation.getCurrentUser();
    boolean own = user.getUserName().equals(UserGroupInformation.getLoginUser().getUserName());
    return own ? null : user.getShortUserName();
  }

  /**
   * Returns the engine for a job that begins: a Python driver that has registered, otherwise a
   * child of this JVM, which the first job starts. A job keeps the one that it began with.
   */
  static Engine forJob() throws QueryExecutionException {
    Engine registered = Callback.ofPython();
    return registered != null ? registered : Child.running();
  }
}
