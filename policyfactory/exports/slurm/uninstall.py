"""The script that takes an export out of Slurm again: what the steps of its installation did, undone.

It shows what it would do, does it when asked to, refuses what does not look as installed, and may be run again.
"""

from __future__ import annotations

from collections.abc import Sequence

from policyfactory.exports.content import File, ascii_text, comment
from policyfactory.exports.scripts import fill, parts
from policyfactory.policy.policy import Policy

NAME = "uninstall.sh"


def uninstall_script(policy: Policy, sections: Sequence[str], file: str = "") -> File:
    """Return the script that takes an installed export back.

    Parameters
    ----------
    policy : Policy
        What was exported.
    sections : sequence of str
        Parts of ``uninstall.sh`` of the scripts, in order.
    file : str
        Name of the file that was installed.
    """
    script = parts("uninstall.sh")
    by_array = " ".join(parts("slurm.txt")["by_array"].split())
    head = [
        ascii_text(f"Takes policy {policy.name} out of the scheduler again."),
        "Made by policyfactory with the export beside it, whose head says what it is.",
    ]
    values = {"HEAD": "\n".join(comment(head)), "BY_ARRAY": by_array, "FILE": file}
    return File(NAME, "".join(fill(script[name], values) for name in sections), executable=True)
