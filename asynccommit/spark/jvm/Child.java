package org.asynccommit.spark;

import java.util.Properties;
import java.util.function.Function;
import org.apache.spark.sql.execution.QueryExecutionException;

/**
 * The engine as a child process of a driver without Python, see {@link Channel}.
 *
 * <p>It hangs in the JVM's system properties as a function, because sessions may load these classes
 * with different class loaders: whoever loads them, a JVM has one child.
 */
final class Child extends Engine {
  private final Function channel;

  private Child(Function channel) {
    this.channel = channel;
  }

  /** Returns the child that runs; starts it if none does. */
  static Child running() throws QueryExecutionException {
    Properties properties = System.getProperties();
    properties.putIfAbsent(Keys.CHILD_LOCK, new Object[0]);
    synchronized (properties.get(Keys.CHILD_LOCK)) {
      Object[] found = (Object[]) properties.get(Keys.CHILD);
      Function channel = found == null ? null : (Function) found[0];
      if (channel == null || channel.apply(null) == null) {
        properties.putIfAbsent(Keys.FILES, new Filesystems());
        channel = Channel.launch();
        properties.put(Keys.CHILD, new Object[] {channel}); // which no listing of properties shows
      }
      return new Child(channel);
    }
  }

  String name() {
    return "the engine";
  }

  String ask(String request) throws Driver.NoAnswer {
    try {
      return (String) channel.apply(request);
    } catch (IllegalStateException e) {
      throw new Driver.NoAnswer(String.valueOf(e.getMessage()), e);
    }
  }
}
