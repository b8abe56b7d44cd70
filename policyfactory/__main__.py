"""``python -m policyfactory`` is the command ``policyfactory``."""

import sys

if __name__ == "__main__":
    # Python has put the current folder first: what lies there under the name of a library would be run instead of it.
    # Last it stays if this package is there itself, which the workers, too, have to find.
    if not sys.flags.safe_path:
        folder = sys.path.pop(0)
        if __file__.startswith(folder) and folder not in sys.path:
            sys.path.append(folder)

    from policyfactory.cli.main import run

    run()
