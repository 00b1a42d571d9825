package org.asynccommit.testing;

import java.net.URI;
import java.util.Map;

/** An emulated account of ADLS Gen2, with the name and key that emulators of the service share. */
public interface AdlsEmulator extends Emulator {
  String ACCOUNT = "devstoreaccount1";
  String KEY =
      "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

  /** Returns the URL of the account, of both endpoints. */
  default String getUrl() {
    return getEndpoint() + "/" + ACCOUNT;
  }

  /**
   * Returns the connection string for Azure's clients in Java, of both endpoints. It has no
   * DfsEndpoint, as other languages' have: these clients refuse a string with one.
   */
  default String getConnectionString() {
    return String.format(
        "DefaultEndpointsProtocol=http;AccountName=%s;AccountKey=%s;BlobEndpoint=%s;",
        ACCOUNT, KEY, getUrl());
  }

  /**
   * Returns the options of Hadoop's client for {@code
   * abfs://FILESYSTEM@devstoreaccount1.dfs.core.windows.net/}; for Spark, put {@code spark.hadoop.}
   * before each name.
   */
  default Map<String, String> getHadoopOptions() {
    String domain = ACCOUNT + ".dfs.core.windows.net";
    return Map.of(
        "fs.azure.abfs.endpoint", URI.create(getEndpoint()).getAuthority(),
        "fs.azure.always.use.https", "false",
        "fs.azure.networking.library", "JDK_HTTP_URL_CONNECTION",
        "fs.azure.account.auth.type." + domain, "SharedKey",
        "fs.azure.account.key." + domain, KEY);
  }
}
