package org.asynccommit.testing;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

/** An emulator that this process can reach, wherever it runs. */
public interface Emulator {
  /** Returns {@code http://HOST:PORT}. */
  String getEndpoint();

  /** Returns the URL of faults, weather, statistics and reset. */
  default String getControl() {
    return getEndpoint() + "/_emulator";
  }

  /**
   * Forgets what is stored and counted; faults are as at the start.
   *
   * @throws UncheckedIOException if the emulator cannot be reached
   */
  default void reset() {
    HttpRequest request =
        HttpRequest.newBuilder(URI.create(getControl() + "/reset"))
            .POST(HttpRequest.BodyPublishers.noBody())
            .build();
    try {
      HttpResponse<Void> response =
          HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.discarding());
      if (response.statusCode() != 200) {
        throw new IOException(request.uri() + " answered " + response.statusCode());
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted before the emulator was reset", error);
    }
  }
}
