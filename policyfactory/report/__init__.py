"""One report for all: sections with tables and pictures, as a page, files, Markdown and on the terminal."""
