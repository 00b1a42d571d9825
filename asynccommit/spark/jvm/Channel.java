package org.asynccommit.spark;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.util.Iterator;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.util.ShutdownHookManager;
import org.apache.spark.sql.execution.QueryExecutionException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The child process that commits for a driver without Python, and the frames to and from it.
 *
 * <p>Its standard input and output carry the frames, many requests at once in both directions. What
 * it prints goes to the log. It ends with this JVM: at the end of its input it begins nothing new. A
 * JVM that ends in order lets it finish first.
 */
final class Channel extends Thread implements Function {
  private static final Logger LOG = LoggerFactory.getLogger(Channel.class);
  private static final String MODULE = "asynccommit.spark.child";
  private static final int START = 120; // seconds
  private static final int FINISH = 1200;
  private static final int AFTER_SPARK = 20; // and before Hadoop closes its filesystems

  private final Python python;
  private final Process process;
  private final OutputStream out;
  private final Stderr stderr;
  private final Executor pool = FileCalls.pool("asynccommit-child");
  private final ChildCalls calls = new ChildCalls();
  private final String first = new BigInteger(128, new SecureRandom()).toString(16);
  private final Map waiting = new ConcurrentHashMap(); // number -> CompletableFuture
  private final AtomicLong numbers = new AtomicLong();
  private final CompletableFuture hello = new CompletableFuture();
  private volatile String ended = null;

  private Channel(Python python, Process process) {
    super("asynccommit-channel");
    this.python = python;
    this.process = process;
    this.out = process.getOutputStream();
    this.stderr = new Stderr(process.getErrorStream());
    setDaemon(true);
  }

  /** Starts the child, and returns once it is of this build. */
  static Channel launch() throws QueryExecutionException {
    Python python = Python.ofSettings();
    Process process;
    try {
      process = python.module(MODULE).start();
    } catch (IOException e) {
      throw refusal(python, e.getMessage());
    }
    Channel made = new Channel(python, process);
    made.stderr.start();
    made.start();
    try {
      made.open();
    } catch (QueryExecutionException e) {
      process.destroyForcibly();
      throw e;
    }
    System.getProperties().putIfAbsent(Keys.PYTHON, python.command); // for Undo
    return made;
  }

  private void open() throws QueryExecutionException {
    try {
      write((first + "\n").getBytes(StandardCharsets.UTF_8));
    } catch (IOException e) {
      LOG.debug("The child has ended", e); // the reader says how
    }
    Map said;
    try {
      String text = (String) hello.get(START, TimeUnit.SECONDS);
      said = (Map) new ObjectMapper().readValue(text, Map.class);
    } catch (TimeoutException e) {
      throw refusal(python, "it has not started within " + START + " s");
    } catch (ExecutionException e) {
      throw refusal(python, String.valueOf(e.getCause().getMessage()));
    } catch (Exception e) {
      throw refusal(python, String.valueOf(e.getMessage()));
    }
    if (!Keys.BUILD.equals(said.get("build"))) {
      throw refusal(
          python,
          "it has asynccommit " + said.get("build") + ", and the jar of this session is of "
              + Keys.BUILD + ", so start Spark with the jar that its asynccommit spark-conf writes");
    }
    int priority = FileSystem.SHUTDOWN_HOOK_PRIORITY + AFTER_SPARK;
    try {
      ShutdownHookManager.get().addShutdownHook(new Finish(), priority, FINISH, TimeUnit.SECONDS);
    } catch (IllegalStateException e) {
      throw refusal(python, "the JVM is ending");
    }
  }

  private static QueryExecutionException refusal(Python python, String why) {
    return Driver.refusal(
        "asynccommit: nothing in this driver commits jobs, so this one was not begun: "
            + python.command + " (" + python.source + ") does not run the engine: " + why + ". Set "
            + Python.SETTING + " when Spark is started, to the Python (3.11 or newer) of an"
            + " environment that has asynccommit; or, in a Python program, call"
            + " asynccommit.spark.configure(spark); or unset spark.sql.sources.commitProtocolClass");
  }

  /**
   * Returns the answer to a request, or null for null if the child has ended. Waits whatever
   * happens to the calling thread: a commit that is not waited for goes on all the same.
   */
  public Object apply(Object request) {
    if (request == null) {
      return ended == null ? "" : null;
    }
    Long number = Long.valueOf(numbers.incrementAndGet());
    CompletableFuture answer = new CompletableFuture();
    waiting.put(number, answer);
    try {
      write(new Frame(Frame.REQUEST, number.longValue(), (String) request).bytes());
    } catch (IOException e) {
      waiting.remove(number);
      throw new IllegalStateException(ended == null ? e.getMessage() : ended, e);
    }
    if (ended != null) { // the reader may have gone before the answer was waited for
      answer.completeExceptionally(new IOException(ended));
    }
    try {
      return waitFor(answer);
    } catch (ExecutionException e) {
      throw new IllegalStateException(e.getCause().getMessage(), e);
    } finally {
      waiting.remove(number);
    }
  }

  private static Object waitFor(CompletableFuture answer) throws ExecutionException {
    boolean interrupted = false;
    try {
      while (true) {
        try {
          return answer.get();
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Reads what the child sends until it ends. */
  public void run() {
    String why = null;
    try {
      DataInputStream in =
          new DataInputStream(new BufferedInputStream(process.getInputStream()));
      String noise = Frame.skipTo(in, first);
      if (noise.length() > 0) {
        LOG.info("{} has printed: {}", python.command, noise);
      }
      while (true) {
        take(Frame.read(in));
      }
    } catch (EOFException e) {
      LOG.debug("The child's output has ended", e);
    } catch (Exception e) {
      why = "it has sent " + e.getMessage();
      process.destroyForcibly();
    }
    end(why);
  }

  private void take(Frame frame) throws IOException {
    if (frame.kind == Frame.REQUEST) {
      pool.execute(new One(frame));
    } else if (frame.kind == Frame.HELLO) {
      hello.complete(frame.text);
    } else if (frame.kind == Frame.ANSWER) {
      CompletableFuture answer = (CompletableFuture) waiting.get(Long.valueOf(frame.number));
      if (answer != null) {
        answer.complete(frame.text);
      }
    } else {
      throw new IOException("a frame of kind " + frame.kind);
    }
  }

  private void end(String why) {
    ended = "the engine, process " + process.pid() + " of " + python.command + ", " + ending(why);
    IOException gone = new IOException(ended);
    hello.completeExceptionally(new IOException(ending(why)));
    for (Iterator each = waiting.values().iterator(); each.hasNext(); ) {
      ((CompletableFuture) each.next()).completeExceptionally(gone);
    }
  }

  private String ending(String why) {
    String code = "has closed its output";
    try {
      if (process.waitFor(10, TimeUnit.SECONDS)) {
        code = "has ended with exit code " + process.exitValue();
        stderr.join(2000);
      } else {
        process.destroyForcibly(); // another one may be started now
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    String last = why == null ? stderr.last() : why;
    return last.length() == 0 ? code : code + ": " + last;
  }

  private void write(byte[] bytes) throws IOException {
    synchronized (out) {
      out.write(bytes);
      out.flush();
    }
  }

  /** A request of the child's, about the filesystems of this JVM. */
  private final class One implements Runnable {
    private final Frame request;

    One(Frame request) {
      this.request = request;
    }

    public void run() {
      Frame reply;
      try {
        reply = new Frame(Frame.ANSWER, request.number, calls.answer(request.text));
      } catch (Throwable e) { // also a class that is missing
        String why = e.getClass().getName() + ": " + e.getMessage();
        reply = new Frame(Frame.FAILURE, request.number, why);
      }
      try {
        write(reply.bytes());
      } catch (IOException e) {
        LOG.debug("The child has ended", e);
      }
    }
  }

  /** Lets the child finish what it does, clean-ups in the background too, when the JVM ends. */
  private final class Finish implements Runnable {
    public void run() {
      try {
        write(new Frame(Frame.BYE, 0, "").bytes());
        process.waitFor(FINISH, TimeUnit.SECONDS);
      } catch (IOException e) {
        LOG.debug("The child has ended", e);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
