"""Kept models: what a cell learnt, as JSON and arrays in a folder of its own, and what it answers
to new texts (:func:`harness.saved_models.model.load`)."""
