package org.asynccommit.spark;

import java.io.File;
import java.net.URL;
import java.net.URLClassLoader;
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
    ClassLoader beside = Compiler.class.getClassLoader();
    URLClassLoader made = new URLClassLoader(new URL[] {new File(args[0]).toURI().toURL()}, beside);
    String[] folder = new String[] {args[0]};
    try {
      Class list = Class.forName("org.asynccommit.spark.Signatures", true, made);
      list.getMethod("main", new Class[] {String[].class}).invoke(null, new Object[] {folder});
    } catch (ClassNotFoundException e) {
      return; // the sources are others than ours
    }
  }
}
