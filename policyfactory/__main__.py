"""``python -m policyfactory`` is the command ``policyfactory``."""

from policyfactory.cli.main import run

if __name__ == "__main__":
    run()
