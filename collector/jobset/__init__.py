"""Kinds of the JobSet project."""
