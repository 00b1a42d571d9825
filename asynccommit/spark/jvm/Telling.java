package org.asynccommit.spark;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tells a Python driver of batches that are in the log, beside what their queries do. While it listens,
 * more of them may end: it hears of those at once.
 */
final class Telling {
  private static final Logger LOG = LoggerFactory.getLogger(Telling.class);
  private static final int LIMIT = 1000; // nobody has listened for so many

  private static List waiting = new ArrayList();
  private static boolean tells = false;

  private Telling() {}

  /** Has one more told; returns at once. */
  static synchronized void of(Map batch) {
    if (Callback.ofPython() == null || waiting.size() >= LIMIT) {
      return;
    }
    waiting.add(batch);
    if (!tells) {
      tells = true;
      Listings.submit(
          new Callable() {
            public Object call() {
              tell();
              return null;
            }
          });
    }
  }

  private static synchronized List next() {
    List found = waiting;
    waiting = new ArrayList();
    tells = !found.isEmpty();
    return found;
  }

  private static void tell() {
    for (List batches = next(); !batches.isEmpty(); batches = next()) {
      try {
        Map request = new LinkedHashMap();
        request.put("version", Integer.valueOf(1));
        request.put("what", "streamed");
        request.put("batches", batches);
        Engine python = Callback.ofPython();
        if (python != null) {
          Driver.ask(python, request);
        }
      } catch (Exception e) {
        LOG.debug("nobody heard of {} batches", Integer.valueOf(batches.size()), e);
      }
    }
  }
}
