package org.asynccommit.spark;

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.function.Function;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * The function of Python's that answers requests, and the key that seals them; see callback.py.
 *
 * <p>Both hang in the JVM's system properties, because sessions may load these classes with different
 * class loaders, each with its own static fields. They are JDK objects, and an array, which nothing
 * that lists system properties shows.
 */
final class Callback extends Engine {
  private static final int SEAL_LENGTH = 64;

  private final Function function;
  private final byte[] key;

  private Callback(Function function, byte[] key) {
    this.function = function;
    this.key = key;
  }

  /** Returns the callback that Python has left, null if it has left none. */
  static Callback ofPython() {
    Object found = System.getProperties().get(Keys.CALLBACK);
    if (!(found instanceof Object[]) || ((Object[]) found).length != 2) {
      return null;
    }
    Object[] both = (Object[]) found;
    return new Callback((Function) both[0], (byte[]) both[1]);
  }

  String name() {
    return "the Python driver";
  }

  /**
   * Returns Python's answer to a request. The request may hold credentials, and when Python has died
   * somebody else may listen on its port: so it goes only to one that has proven to have the key.
   */
  String ask(String request) throws Driver.NoAnswer {
    exchange(new BigInteger(128, new SecureRandom()).toString(16));
    return exchange(request);
  }

  private String exchange(String text) throws Driver.NoAnswer {
    String seal = seal("request", text);
    Object reply;
    try {
      reply = function.apply(seal + text);
    } catch (RuntimeException e) {
      throw new Driver.NoAnswer(String.valueOf(e.getMessage()), e);
    }
    if (!(reply instanceof String) || ((String) reply).length() < SEAL_LENGTH) {
      throw new Driver.NoAnswer("the answer was not Python's", null);
    }
    String answer = ((String) reply).substring(SEAL_LENGTH);
    if (!isSame(((String) reply).substring(0, SEAL_LENGTH), seal("answer to " + seal, answer))) {
      throw new Driver.NoAnswer("the answer was not Python's", null);
    }
    return answer;
  }

  private static boolean isSame(String one, String other) {
    return MessageDigest.isEqual(
        one.getBytes(StandardCharsets.UTF_8), other.getBytes(StandardCharsets.UTF_8));
  }

  private String seal(String kind, String text) {
    try {
      Mac mac = Mac.getInstance("HmacSHA256");
      mac.init(new SecretKeySpec(key, "HmacSHA256"));
      byte[] digest = mac.doFinal((kind + "\n" + text).getBytes(StandardCharsets.UTF_8));
      String hex = new BigInteger(1, digest).toString(16);
      StringBuilder padded = new StringBuilder();
      for (int i = hex.length(); i < SEAL_LENGTH; i++) {
        padded.append('0');
      }
      return padded.append(hex).toString();
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }
}
