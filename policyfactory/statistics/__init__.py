"""What the cases say together: values, differences, places and wins, each with its interval."""
