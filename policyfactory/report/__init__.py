"""What was found, as sections; and the sections as files, as words and as a page."""
