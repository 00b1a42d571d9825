package org.asynccommit.spark;

import org.apache.spark.sql.SparkSessionExtensions;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * Adds {@link StreamGuard} to the sessions of a program that does not ask for it, by {@code
 * spark.sql.extensions}.
 */
public final class StreamExtensions extends AbstractFunction1 {
  public Object apply(Object extensions) {
    ((SparkSessionExtensions) extensions)
        .injectOptimizerRule(
            new AbstractFunction1() {
              public Object apply(Object session) {
                return new StreamGuard();
              }
            });
    return BoxedUnit.UNIT;
  }
}
