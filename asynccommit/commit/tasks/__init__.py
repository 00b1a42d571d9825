"""Files and manifests as tasks write them."""
