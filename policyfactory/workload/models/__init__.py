"""Models of jobs and of requested times: Lublin-Feitelson and Tsafrir."""
