package org.asynccommit.spark;

import java.io.File;
import org.codehaus.janino.ClassLoaderIClassLoader;
import org.codehaus.janino.Compiler;

/**
 * Compiles the other sources with the compiler that Spark ships for its own generated code.
 *
 * <p>Run by {@code org.codehaus.janino.SimpleCompiler}; arguments: directory for the classes, then
 * the sources. No JDK is needed.
 */
public class Build {
  public static void main(String[] args) throws Exception {
    File[] sources = new File[args.length - 1];
    for (int i = 1; i < args.length; i++) {
      sources[i - 1] = new File(args[i]);
    }
    Compiler compiler = new Compiler();
    compiler.setIClassLoader(new ClassLoaderIClassLoader(Compiler.class.getClassLoader()));
    compiler.setDestinationDirectory(new File(args[0]), false);
    compiler.setDebugLines(true);
    compiler.setDebugSource(true);
    compiler.compile(sources);
  }
}
