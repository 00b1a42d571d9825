package org.asynccommit.spark;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Has a Python process of its own abort a job, or take its commit back, when the driver's Python
 * answers no more.
 *
 * <p>A JVM that Python has started ends with it. So from before the commit until it is known how it
 * ended, a shutdown hook keeps the JVM from going. The process needs no JVM: once it has its request
 * it goes on alone, and if a Python is committing after all, it leaves everything as it is.
 */
final class Undo extends Thread {
  private static final Logger LOG = LoggerFactory.getLogger(Undo.class);
  private static final long PATIENCE = 600;

  private final Map request;
  private final CountDownLatch over = new CountDownLatch(1);

  /** @param request names the job, with credentials: it is never logged, and no argument */
  Undo(Map request) {
    super("asynccommit-undo");
    this.request = request;
    try {
      Runtime.getRuntime().addShutdownHook(this);
    } catch (IllegalStateException e) {
      LOG.debug("the JVM is ending already", e);
    }
  }

  /** The hook: waits until the commit has ended, or has been taken back. */
  public void run() {
    try {
      over.await(2 * PATIENCE, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Lets the JVM end. */
  void end() {
    over.countDown();
    try {
      Runtime.getRuntime().removeShutdownHook(this);
    } catch (IllegalStateException e) {
      LOG.debug("the JVM is ending", e);
    }
  }

  /** Does it, and returns what came of it in words. */
  String take() {
    try {
      return outcome(launch());
    } catch (IOException e) {
      return "it could not be undone, " + e.getMessage();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return "it is being undone";
    }
  }

  private Process launch() throws IOException {
    ProcessBuilder builder = Python.ofEngine().module("asynccommit.spark.undo");
    builder.redirectError(ProcessBuilder.Redirect.INHERIT);
    byte[] text = new ObjectMapper().writeValueAsBytes(request);
    Process process = builder.start();
    OutputStream out = process.getOutputStream();
    try {
      out.write(text);
    } finally {
      out.close();
    }
    return process;
  }

  private static String outcome(Process process) throws InterruptedException {
    if (!process.waitFor(PATIENCE, TimeUnit.SECONDS)) {
      return "it is still being undone";
    }
    try {
      InputStream in = process.getInputStream();
      try {
        return String.valueOf(((Map) new ObjectMapper().readValue(in, Map.class)).get("outcome"));
      } finally {
        in.close();
      }
    } catch (IOException e) {
      return "its undoing ended with exit code " + process.exitValue() + " and no word";
    }
  }
}
