"""Kinds of the scheduler-plugins project."""
