package org.asynccommit.spark;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.SparkContext;

/** Answers the child's requests about filesystems, as Py4J does for a Python driver. */
final class ChildCalls {
  private static final int MOST = 1000; // of stores at once; the one that was idle longest goes

  private final ObjectMapper mapper = new ObjectMapper();
  private final Map opened = new Recent(); // number of a store -> FileCalls

  /** Returns a JSON text. */
  String answer(String text) throws IOException, InterruptedException {
    Map request = (Map) mapper.readValue(text, Map.class);
    Filesystems files = files();
    String what = String.valueOf(request.get("what"));
    String name = String.valueOf(request.get("name"));
    if ("has".equals(what)) {
      return String.valueOf(files.has(name));
    }
    if ("facts".equals(what)) {
      return files.facts(name);
    }
    if ("open".equals(what)) {
      files.open(name, SparkContext.getOrCreate().hadoopConfiguration());
      return "null";
    }
    FileCalls calls = callsOf(files, request.get("store"), name);
    long turn = ((Number) request.get("turn")).longValue();
    if ("submit".equals(what)) {
      calls.begin(turn, (List) request.get("calls"));
      return "null";
    }
    if ("ended".equals(what)) {
      return calls.ended(turn, ((Number) request.get("patience")).longValue());
    }
    throw new IOException("there is no request " + what);
  }

  /** Returns those of this JVM; of another class loader only what is in them is of use. */
  private static Filesystems files() {
    Object found = System.getProperties().get(Keys.FILES);
    if (found instanceof Filesystems) {
      return (Filesystems) found;
    }
    Filesystems same = new Filesystems();
    same.putAll((Map) found);
    return same;
  }

  private FileCalls callsOf(Filesystems files, Object store, String name)
      throws IOException, InterruptedException {
    synchronized (opened) {
      FileCalls found = (FileCalls) opened.get(store);
      if (found == null) {
        found = files.calls(name);
        if (found == null) {
          throw new IOException("no job has opened " + name);
        }
        opened.put(store, found);
      }
      return found;
    }
  }

  private static final class Recent extends LinkedHashMap {
    private static final long serialVersionUID = 1L;

    Recent() {
      super(16, 0.75f, true);
    }

    protected boolean removeEldestEntry(Map.Entry eldest) {
      return size() > MOST;
    }
  }
}
