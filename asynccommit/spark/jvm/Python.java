package org.asynccommit.spark;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;

/** The Python that runs modules of this package: the engine as a child, and undo. */
final class Python {
  /** The setting; only that of the application counts, since it names a program to run. */
  static final String SETTING = "spark.asynccommit.python";

  private static final String[] SETTINGS = {
    SETTING, "spark.pyspark.driver.python", "spark.pyspark.python"
  };
  private static final String[] VARIABLES = {"PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON"};

  /** The interpreter. */
  final String command;

  /** What names it, in words. */
  final String source;

  private final String path;

  private Python(String command, String source, String path) {
    this.command = command;
    this.source = source;
    this.path = path;
  }

  /** Returns the one that settings or variables name, in the order in which Spark looks. */
  static Python ofSettings() {
    SparkConf conf = SparkContext.getOrCreate().getConf();
    for (int i = 0; i < SETTINGS.length; i++) {
      String found = conf.get(SETTINGS[i], "").trim();
      if (found.length() > 0) {
        return new Python(found, SETTINGS[i], null);
      }
    }
    for (int i = 0; i < VARIABLES.length; i++) {
      String found = System.getenv(VARIABLES[i]);
      if (found != null && found.trim().length() > 0) {
        return new Python(found.trim(), VARIABLES[i], null);
      }
    }
    return new Python("python3", "the default", null);
  }

  /** Returns that of the engine, which may be dead by now. */
  static Python ofEngine() throws IOException {
    String found = System.getProperty(Keys.PYTHON);
    if (found == null) {
      throw new IOException("which Python to run is not known");
    }
    return new Python(found, Keys.PYTHON, System.getProperty(Keys.PYTHON_PATH));
  }

  /**
   * Returns what starts a module. Requests go to its standard input: neither arguments nor variables
   * tell other users anything.
   */
  ProcessBuilder module(String name) {
    List words = new ArrayList();
    words.add(command);
    words.add("-P"); // the working directory is no place for modules
    words.add("-m");
    words.add(name);
    ProcessBuilder builder = new ProcessBuilder(words);
    if (path != null) {
      builder.environment().put("PYTHONPATH", path);
    }
    return builder;
  }
}
