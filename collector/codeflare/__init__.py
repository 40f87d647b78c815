"""Kinds of CodeFlare."""
