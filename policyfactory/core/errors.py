"""One tree of errors.

Every message names the value, the place (file:line, job id, field), what was expected and the
cure. The command line prints the message alone, without a traceback, and exits with ``exit_code``.
"""

from __future__ import annotations

from typing import Any, Self


class PolicyfactoryError(Exception):
    """PolicyfactoryError is the base of everything that the package raises on purpose."""

    exit_code = 1


class UsageError(PolicyfactoryError):
    """UsageError is raised when an option or an argument cannot be used as it was given."""

    exit_code = 2


class InputError(PolicyfactoryError):
    """InputError is raised when a file that was asked for cannot be read at all."""


class TraceFormatError(InputError):
    """TraceFormatError is raised when a log is not in the format that it should be in (names file and line)."""


class WorkloadError(PolicyfactoryError):
    """WorkloadError is raised when a log was read but its jobs cannot be used as asked."""


class ScoreTableError(InputError):
    """ScoreTableError is raised when a score table is malformed or does not belong to its manifest."""


class SiteError(InputError):
    """SiteError is raised when a site file, or a cluster's own file, is malformed, contradicts itself or is too new."""


class FormulaError(PolicyfactoryError):
    """FormulaError is raised when a text is not a formula of the grammar.

    Parameters
    ----------
    message : str
        What is wrong and what was expected.
    text : str
        The whole formula.
    position : int
        0-based index of the first character at fault.
    """

    def __init__(self, message: str, text: str = "", position: int | None = None) -> None:
        self.reason = message
        self.text = text
        self.position = position
        if position is None:
            super().__init__(message)
            return
        # A long formula is shown around its fault only.
        start = max(0, position - 60)
        shown = text[start : position + 20].replace("\n", " ").replace("\t", " ")
        shown = "".join(c if c.isprintable() else "?" for c in shown)
        caret = " " * (position - start) + "^"
        super().__init__(f"{message} (at character {position + 1})\n    {shown}\n    {caret}")

    def __reduce__(self) -> tuple[type[Self], tuple[str, str, int | None], dict[str, Any]]:
        """Return what makes the same error in another process."""
        return type(self), (self.reason, self.text, self.position), self.__dict__


class ModelFileError(InputError):
    """ModelFileError is raised when a model file is malformed or of a schema this version does not know."""


class FitError(PolicyfactoryError):
    """FitError is raised when a score table cannot determine the coefficients that were asked for."""


class EvaluationError(PolicyfactoryError):
    """EvaluationError is raised when policies cannot be compared as asked."""


class ExportError(PolicyfactoryError):
    """ExportError is raised when a target cannot express a policy."""


class OutputError(PolicyfactoryError):
    """OutputError is raised when a result cannot be written where it was asked for."""


class WorkersError(PolicyfactoryError):
    """WorkersError is raised when the workers of a run cannot be reached, or are lost."""
