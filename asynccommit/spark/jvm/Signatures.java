package org.asynccommit.spark;

import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.InvalidObjectException;
import java.io.PrintWriter;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Set;
import java.util.TreeSet;

/**
 * What the classes of this jar use and override of Spark, Hadoop and Scala, compared with what runs.
 *
 * <p>A vendor's Spark has the version of another with other signatures. A call of one that is gone
 * fails in the middle of a job, and a method that overrides none any more is not called at all. So the
 * compiler leaves a list in the jar, and driver and executors look for each entry of it.
 */
public final class Signatures {
  private static final String LIST = "signatures.txt";
  private static final String PACKAGE = "org.asynccommit.spark.";
  private static final String KINDS = "vsngf"; // virtual, static, new, get of static, get of field

  private static String answer = null;

  /** Returns the first difference, empty if there is none. */
  public synchronized String mismatch() throws IOException {
    if (answer == null) {
      answer = first();
    }
    return answer;
  }

  /** Refuses to run on an executor that has other signatures than the jar was compiled for. */
  static void require() throws IOException {
    String found = new Signatures().mismatch();
    if (found.length() > 0) {
      throw new InvalidObjectException(
          "asynccommit: this executor has another Spark than the driver: " + found);
    }
  }

  /** Prints the difference; with a directory of compiled classes, writes its list. */
  public static void main(String[] args) throws Exception {
    if (args.length == 0) {
      System.out.print(new Signatures().mismatch());
      return;
    }
    File folder = new File(args[0], PACKAGE.replace('.', '/'));
    Set lines = new TreeSet();
    String[] names = folder.list();
    for (int i = 0; i < names.length; i++) {
      if (names[i].endsWith(".class")) {
        addUsed(new File(folder, names[i]), lines);
        addOverridden(Class.forName(PACKAGE + names[i].replace(".class", ""), false, loader()), lines);
      }
    }
    PrintWriter out = new PrintWriter(new File(folder, LIST), "UTF-8");
    for (Iterator each = lines.iterator(); each.hasNext(); ) {
      out.print(each.next() + "\n");
    }
    out.close();
  }

  private static String first() throws IOException {
    InputStream list = Signatures.class.getResourceAsStream(LIST);
    if (list == null) {
      return "the jar has no list of signatures";
    }
    BufferedReader lines = new BufferedReader(new InputStreamReader(list, "UTF-8"));
    try {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        String[] parts = line.split(" ");
        String why = difference(parts[0].charAt(0), parts[1], parts[2], parts[3]);
        if (why != null) {
          return why;
        }
      }
      return unknown();
    } finally {
      lines.close();
    }
  }

  /** Returns what Spark would call that is not here: these run, but are no part of a list. */
  private static String unknown() {
    try {
      Class kind = Class.forName(PACKAGE + "AsyncCommitProtocol", false, loader());
      Set own = new HashSet();
      Method[] declared = kind.getDeclaredMethods();
      for (int i = 0; i < declared.length; i++) {
        own.add(declared[i].getName());
      }
      Method[] methods = kind.getMethods();
      for (int i = 0; i < methods.length; i++) {
        Method each = methods[i];
        boolean other = each.getDeclaringClass() != kind && own.contains(each.getName());
        if (Modifier.isAbstract(each.getModifiers()) || (other && !isOfName(each))) {
          return each + " is not known to asynccommit";
        }
      }
      return "";
    } catch (Throwable e) {
      return String.valueOf(e);
    }
  }

  /** Whether this is the form of Spark 3.1 that takes an extension, and calls the one that is here. */
  private static boolean isOfName(Method method) {
    Class[] types = method.getParameterTypes();
    return types.length == 3 && types[2] == String.class;
  }

  /** Returns how a member differs, null if it is as it was. */
  private static String difference(char kind, String owner, String name, String type) {
    String text = owner + "." + name + type;
    try {
      find(kind, Class.forName(owner, false, loader()), name, type);
      return null;
    } catch (NoSuchMethodException e) {
      return "there is no " + text;
    } catch (NoSuchFieldException e) {
      return "there is no " + text;
    } catch (Throwable e) {
      return text + " is another: " + e;
    }
  }

  private static void find(char kind, Class owner, String name, String type) throws Throwable {
    MethodHandles.Lookup lookup = MethodHandles.publicLookup();
    boolean field = kind == 'g' || kind == 'f';
    String text = field ? "()" + type : type;
    MethodType method = MethodType.fromMethodDescriptorString(text, loader());
    if (kind == 'v') {
      lookup.findVirtual(owner, name, method);
    } else if (kind == 's') {
      lookup.findStatic(owner, name, method);
    } else if (kind == 'n') {
      lookup.findConstructor(owner, method);
    } else if (kind == 'g') {
      lookup.findStaticGetter(owner, name, method.returnType());
    } else {
      lookup.findGetter(owner, name, method.returnType());
    }
  }

  /** Adds a member in the way in which it is found; what is not public is left out. */
  private static void add(Set lines, String owner, String name, String type) {
    for (int i = 0; i < KINDS.length(); i++) {
      char kind = KINDS.charAt(i);
      boolean field = kind == 'g' || kind == 'f';
      boolean made = kind == 'n';
      if (field != (type.charAt(0) != '(') || made != "<init>".equals(name)) {
        continue;
      }
      if (difference(kind, owner, name, type) == null) {
        lines.add(kind + " " + owner + " " + name + " " + type);
        return;
      }
    }
  }

  private static void addOverridden(Class kind, Set lines) {
    Class above = kind.getSuperclass();
    while (above != null && above.getName().startsWith(PACKAGE)) {
      above = above.getSuperclass();
    }
    Method[] methods = kind.getDeclaredMethods();
    for (int i = 0; i < methods.length; i++) {
      Class[] types = methods[i].getParameterTypes();
      String type = MethodType.methodType(methods[i].getReturnType(), types).toMethodDescriptorString();
      if (above != null && !isOurs(above.getName())) {
        add(lines, above.getName(), methods[i].getName(), type);
      }
      Class[] faces = kind.getInterfaces();
      for (int j = 0; j < faces.length; j++) {
        if (!isOurs(faces[j].getName())) {
          add(lines, faces[j].getName(), methods[i].getName(), type);
        }
      }
    }
  }

  /** Whether nobody else changes it: the JDK's, and what is in this jar. */
  private static boolean isOurs(String name) {
    return name.startsWith("java.") || name.startsWith("javax.") || name.startsWith(PACKAGE)
        || name.startsWith("[");
  }

  /** Adds the members that the constant pool of a class names (JVMS, 4.4). */
  private static void addUsed(File file, Set lines) throws IOException {
    DataInputStream in = new DataInputStream(new FileInputStream(file));
    try {
      in.skipBytes(8);
      int count = in.readUnsignedShort();
      Object[] pool = new Object[count];
      for (int i = 1; i < count; i++) {
        int tag = in.readUnsignedByte();
        if (tag == 1) {
          pool[i] = in.readUTF();
        } else if (tag == 7 || tag == 8 || tag == 16 || tag == 19 || tag == 20) {
          pool[i] = new int[] {tag, in.readUnsignedShort()};
        } else if (tag == 15) {
          in.skipBytes(3);
        } else if (tag == 5 || tag == 6) {
          in.skipBytes(8);
          i++;
        } else if (tag == 3 || tag == 4) {
          in.skipBytes(4);
        } else {
          pool[i] = new int[] {tag, in.readUnsignedShort(), in.readUnsignedShort()};
        }
      }
      for (int i = 1; i < count; i++) {
        if (pool[i] instanceof int[] && ((int[]) pool[i])[0] >= 9 && ((int[]) pool[i])[0] <= 11) {
          int[] member = (int[]) pool[i];
          int[] named = (int[]) pool[member[2]];
          String owner = ((String) pool[((int[]) pool[member[1]])[1]]).replace('/', '.');
          if (!isOurs(owner)) {
            add(lines, owner, (String) pool[named[1]], (String) pool[named[2]]);
          }
        }
      }
    } finally {
      in.close();
    }
  }

  private static ClassLoader loader() {
    return Signatures.class.getClassLoader();
  }
}
