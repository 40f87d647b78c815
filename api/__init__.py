"""Answers over HTTP: routes, who is asking and what they may see, formats. Computes no figure."""
