"""What users can write better: requests and classes that cost others, or themselves."""
