"""Kinds of Kubernetes itself, and the only door to the Kubernetes client."""
