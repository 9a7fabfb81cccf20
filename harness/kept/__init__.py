"""The older place of :mod:`harness.saved_models`; it goes with the next version."""
