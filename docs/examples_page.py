"""Make docs/examples.md of the notebooks in examples/: python docs/examples_page.py."""  # noqa: INP001 (a script)

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["render"]

HERE = Path(__file__).parent
HEAD = """# Examples

Six notebooks from a first look at a log to a policy of your own. They are the scripts in `examples/`: run them with
Python, or open them as notebooks (Jupyter with jupytext, VS Code and PyCharm know the `# %%` cells). Each takes some
seconds, the last a minute; the tests run all of them.
"""


def render() -> str:
    """Return the page: text cells as text, one heading deeper, code cells as code."""
    parts = [HEAD]
    for notebook in sorted((HERE.parent / "examples").glob("*.py")):
        for cell in re.split(r"^# %%", notebook.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            kind, text = cell.split("\n", 1)
            if "[markdown]" in kind:
                lines = [line.removeprefix("#").removeprefix(" ") for line in text.strip().splitlines()]
                parts.append("\n".join(f"#{line}" if line.startswith("#") else line for line in lines) + "\n")
            elif text.strip():
                # Not "python": the tests run the notebooks, and need not run this page, too.
                parts.append(f"```py\n{text.strip()}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    (HERE / "examples.md").write_text(render(), encoding="utf-8")
