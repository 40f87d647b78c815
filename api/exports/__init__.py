"""A month's statement as files: CSV, Parquet, XLSX and FOCUS, each written from the same lines."""
