"""The scheduling rules of other programs, kernel by kernel: SC17 and ocst."""
