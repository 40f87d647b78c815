"""Wires the parts: settings, schedule, run time, command line. Knows all, known by none."""
