"""Tables of jobs (Parquet, CSV) as the sites publish them, read by mappings that say which column is what."""
