"""Kinds of the KAI scheduler, and what it reads from pods."""
