package org.asynccommit.spark;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.fs.FileSystem;

/**
 * Takes many calls to a filesystem from Python at once, and gives their results as they come.
 *
 * <p>A call through Py4J costs more than a rename does. So one hands over all that have gathered, and
 * another one takes all results that are there. Neither waits for a slow filesystem in between.
 */
public final class FileCalls {
  // Of all stores of a JVM. More than a core keeps busy only hold each other up.
  private static final int THREADS =
      Math.min(64, Math.max(16, 12 * Runtime.getRuntime().availableProcessors()));
  private static final int MOST = 4096; // results of one answer
  private static final ThreadPoolExecutor POOL = pool("asynccommit-files");

  private final FileWork work;
  private final BlockingQueue done = new LinkedBlockingQueue();
  private final ObjectMapper mapper = new ObjectMapper();
  private final Object answering = new Object();
  private long submitted = 0;
  private long answered = 0;
  private String answer = null;

  FileCalls(FileSystem fs) {
    this.work = new FileWork(fs);
  }

  /**
   * Begins calls: a JSON array of arrays of a number, a name and arguments.
   *
   * @param turn counts up; Py4J may send a request again, which then does nothing
   */
  public void submit(long turn, byte[] calls) throws IOException {
    begin(turn, (List) mapper.readValue(calls, List.class));
  }

  synchronized void begin(long turn, List all) {
    if (turn <= submitted) {
      return;
    }
    submitted = turn;
    for (int i = 0; i < all.size(); i++) {
      POOL.execute(new One((List) all.get(i)));
    }
  }

  /**
   * Returns the calls that have ended: a JSON array of arrays of a number, and a result, or null, the
   * name of an exception's class and its message. As a text: Py4J takes bytes apart one by one.
   *
   * @param turn counts up; a request that is sent again has the same answer
   * @param patience milliseconds to wait for the first one
   */
  public String ended(long turn, long patience) throws IOException, InterruptedException {
    synchronized (answering) {
      if (turn > answered) {
        List results = new ArrayList();
        Object first = done.poll(patience, TimeUnit.MILLISECONDS);
        if (first != null) {
          results.add(first);
          done.drainTo(results, MOST);
        }
        answer = mapper.writeValueAsString(results);
        answered = turn;
      }
      return answer;
    }
  }

  private final class One implements Runnable {
    private final List call;

    One(List call) {
      this.call = call;
    }

    public void run() {
      List result = new ArrayList();
      result.add(call.get(0));
      try {
        result.add(work.run((String) call.get(1), call));
      } catch (Throwable e) { // also a class that is missing
        result.add(null);
        result.add(e.getClass().getName());
        result.add(String.valueOf(e.getMessage()));
      }
      done.add(result);
    }
  }

  static ThreadPoolExecutor pool(String name) {
    ThreadPoolExecutor made =
        new ThreadPoolExecutor(
            THREADS, THREADS, 10, TimeUnit.SECONDS, new LinkedBlockingQueue(), new Named(name));
    made.allowCoreThreadTimeOut(true);
    return made;
  }

  /** Threads that keep neither the JVM nor a session's classes alive. */
  private static final class Named implements ThreadFactory {
    private final AtomicInteger count = new AtomicInteger();
    private final String name;

    Named(String name) {
      this.name = name;
    }

    public Thread newThread(Runnable work) {
      Thread thread = new Thread(work, name + "-" + count.incrementAndGet());
      thread.setDaemon(true);
      thread.setContextClassLoader(FileCalls.class.getClassLoader());
      return thread;
    }
  }
}
