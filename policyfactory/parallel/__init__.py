"""Work units on threads, processes or a Dask cluster: the same results on each."""
