"""What a reader passed over, or noticed and kept: it is counted, never lost."""

from __future__ import annotations

import dataclasses

__all__ = ["Passed"]


@dataclasses.dataclass(frozen=True, slots=True)
class Passed:
    """Something a reader did to a line, beside the record that it may give of it.

    The report adds up what has the same ``action`` and ``what``, and names the first; so both are fixed texts of the
    reader, without anything of the line in them.

    Parameters
    ----------
    line : int
        Line of the file (from 1), or place of the job in a JSON list (from 1).
    job : str
        Id of the job, as far as it could be read; may be empty.
    what : str
        What the line has, for example ``"steps of a job"``.
    why : str
        Why that is right, or why it matters.
    action : str
        ``"dropped"`` (the line gives no record), ``"changed"`` (something was mended), ``"kept"`` (noticed only) or
        ``"skipped"`` (the line is not about a job of its own: nothing is lost).
    count : int
        How many jobs or lines it stands for.
    """

    line: int
    job: str
    what: str
    why: str
    action: str = "dropped"
    count: int = 1
