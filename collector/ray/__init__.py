"""Kinds of KubeRay."""
