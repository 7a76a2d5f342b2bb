"""Runs on disk: the store, its header, and what is encoded in it."""
