"""Kinds of Kubeflow: TrainJobs, and the jobs of its first training operator."""
