package org.asynccommit.spark;

import java.io.IOException;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.OutputCommitter;
import org.apache.hadoop.mapreduce.TaskAttemptContext;

/** What a task attempt does, whichever protocol brings its files to the table. */
abstract class TaskSide extends OutputCommitter {
  final Layout layout;

  TaskSide(Layout layout) {
    this.layout = layout;
  }

  /** Returns where this attempt writes a file of the table. */
  abstract String tempFile(TaskAttemptContext context, String directory, String name);

  /** Returns where this attempt stages a file whose final place is outside of the table. */
  abstract String stagedFile(TaskAttemptContext context, Path dest) throws IOException;

  /** Returns what this attempt tells the driver: JDK classes only; null if it wrote nothing. */
  abstract Map message();

  static String attemptId(TaskAttemptContext context) {
    return context.getTaskAttemptID().toString();
  }

  static String taskId(TaskAttemptContext context) {
    return context.getTaskAttemptID().getTaskID().toString();
  }
}
