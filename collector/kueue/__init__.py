"""Kinds of Kueue, in API versions v1beta1 and v1beta2."""
