"""Applies approved proposals to the cluster. Nothing is applied yet; nothing here writes."""
