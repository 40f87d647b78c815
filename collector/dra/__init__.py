"""Kinds of dynamic resource allocation (`resource.k8s.io`)."""
