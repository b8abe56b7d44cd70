"""The rules of the programs of SC'17, kernel by kernel."""
