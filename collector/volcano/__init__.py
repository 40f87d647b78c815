"""Kinds of Volcano."""
