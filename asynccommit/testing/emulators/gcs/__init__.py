"""The Google Cloud Storage emulator."""
