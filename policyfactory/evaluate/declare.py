"""What declarations of options are made of: what is said of a key, and the types whose values are written as text."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, WrapValidator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from policyfactory.core.errors import PolicyfactoryError, UsageError
from policyfactory.core.options import Key, Option
from policyfactory.core.text import WEEK, format_duration, parse_duration
from policyfactory.evaluate.analyses import ANALYSES, make_analysis
from policyfactory.workload.jobs import Workload
from policyfactory.workload.machine import parse_assumptions
from policyfactory.workload.presets import find_preset
from policyfactory.workload.resample import parse_length
from policyfactory.workload.sensitivity import EstimateRule, parse_estimates
from policyfactory.workload.windows import WindowSpec, parse_windows

__all__ = [
    "IF_KNOWN",
    "MAX_CASES",
    "AnalysisOf",
    "Assumed",
    "Beginning",
    "ByLogAndPolicy",
    "Cases",
    "Estimates",
    "FileName",
    "Key",
    "Length",
    "Listed",
    "Load",
    "LongestRequest",
    "Names",
    "Number",
    "OneOrMore",
    "Option",
    "OptionTable",
    "Period",
    "Precise",
    "PresetName",
    "Recorded",
    "Seed",
    "Sha256",
    "Share",
    "Text",
    "Threshold",
    "Waiting",
    "Windows",
    "key",
    "key_of",
    "option",
    "parse_share",
    "parse_threshold",
]

MAX_CASES = 100_000
IF_KNOWN = "if-known"  # the recorded schedule is shown where every case has it

_MAX_TEXT = 20_000
_MAX_ENTRIES = 1_000
_LARGEST = 1e300
_LONGEST_PERIOD = 200_000 * WEEK
_TIMES_LONGEST = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)\s*x\s*longest\s*request", re.IGNORECASE)


# What is said of a key. -----------------------------------------------------------------------------------------------


def key(default: Any, text: str, page: str = "", *, kind: str = "", stated: str = "", **limits: Any) -> Any:
    """Declare a key of a table: its default (``...`` where it must be given), what it means (`Key`), and its limits."""
    return Field(default, json_schema_extra=_extra(Key(text, page, kind, stated)), **limits)


def option(default: Any, text: str, page: str = "", **more: Any) -> Any:
    """Declare a key that is also an option; ``more`` are the further fields of `Option`."""
    return Field(default, json_schema_extra=_extra(Option(text, page, **more)))


def _extra(said: Key) -> Any:
    return {"key": said}


def key_of(field: FieldInfo) -> Key:
    """Return what is said of a key."""
    extra: Any = field.json_schema_extra
    declared: Key = extra["key"]
    return declared


# Types. ---------------------------------------------------------------------------------------------------------------


def _refusing(parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return ``parse`` with our errors as pydantic's, which know the place; the error itself goes along."""

    def checked(value: Any) -> Any:
        try:
            return parse(value)
        except PolicyfactoryError as error:
            raise PydanticCustomError("policyfactory", "{error}", {"error": error}) from None

    return checked


def _of_text(parse: Callable[[str], Any]) -> BeforeValidator:
    """Return what makes a value of its text; a value that was made already is left alone."""

    def made(value: Any) -> Any:
        if isinstance(value, str):
            return parse(value)
        if isinstance(value, bool | int | float | list | dict):
            raise PydanticCustomError("string_type", "no text")
        return value

    return BeforeValidator(_refusing(made))


def _windows(text: str) -> WindowSpec:
    windows = parse_windows(text)
    if (windows.count or 0) > MAX_CASES:
        raise UsageError(f"ask for at most {MAX_CASES:,}")
    return windows


def _longest_request(text: str) -> int:
    seconds = parse_duration(text)
    if seconds == float("inf"):
        raise UsageError('the model needs a longest request; write for example "18h"')
    return int(seconds)


def _period(text: str) -> str:
    if not parse_duration(text) <= _LONGEST_PERIOD:
        raise UsageError("is no length of a period; give a duration, for example 1d or 1w")
    return text


@dataclasses.dataclass(frozen=True, slots=True)
class LeadIn:
    """The beginning of a log, which is simulated but not measured.

    Parameters
    ----------
    seconds : int or None
        How long it lasts.
    jobs : int or None
        Or how many jobs it has.
    """

    seconds: int | None
    jobs: int | None = None

    def __str__(self) -> str:
        return f"{self.jobs}jobs" if self.seconds is None else format_duration(self.seconds)

    def rows(self, workload: Workload) -> int:
        """Return how many jobs it has in a workload."""
        if self.seconds is None:
            return self.jobs or 0
        submit = workload.submit
        return int(np.searchsorted(submit, submit[0] + self.seconds * workload.ticks)) if len(submit) else 0


def parse_lead_in(text: str) -> LeadIn:
    """Return the lead-in of a duration, or of a number of jobs: ``30d``, ``5000jobs``.

    Raises
    ------
    UsageError
        If it is neither.
    """
    count, found, rest = text.strip().lower().partition("jobs")
    if found:
        if not count.strip().isdecimal() or rest:
            raise UsageError("is no number of jobs; write for example 5000jobs")
        return LeadIn(None, int(count))
    seconds = parse_duration(text, unit=True)
    if not math.isfinite(seconds):
        raise UsageError("a lead-in ends; write for example 30d or 5000jobs")
    return LeadIn(int(seconds))


@dataclasses.dataclass(frozen=True, slots=True)
class Threshold:
    """A waiting time after which jobs go first.

    Parameters
    ----------
    seconds : float or None
        The time itself.
    times_longest : float or None
        Or a multiple of the longest request of each log.
    """

    seconds: float | None
    times_longest: float | None = None


def parse_threshold(text: str) -> Threshold:
    """Return the threshold of a duration, or of ``3x longest request``.

    Raises
    ------
    UsageError
        If the text is neither.
    """
    times = _TIMES_LONGEST.fullmatch(text.strip())
    return Threshold(None, float(times.group(1))) if times else Threshold(parse_duration(text, unit=True))


def parse_share(text: str) -> float:
    """Return the share that ``2%`` or ``0.02`` is.

    Raises
    ------
    UsageError
        If the text is no share between 0 and 1.
    """
    clean = text.strip()
    try:
        share = float(clean.removesuffix("%")) / (100 if clean.endswith("%") else 1)
    except ValueError:
        raise UsageError(f"precision {text!r} is no share; write for example 2% or 0.02") from None
    if not 0 < share < 1:
        raise UsageError(f"precision {text!r} is not between 0 and 1; write for example 2%")
    return share


def _once(names: tuple[str, ...]) -> tuple[str, ...]:
    for at, name in enumerate(names):
        if name in names[:at]:
            raise UsageError(f"names {name[:60]} twice; name it once")
    return names


def _recorded(value: Any) -> bool | str:
    if isinstance(value, bool) or value == IF_KNOWN:
        known: bool | str = value
        return known
    raise UsageError(f'write true, false, or "{IF_KNOWN}" (where every job has a recorded start)')


def _analysis(value: Any) -> Any:
    """Return the analysis of a name, or of a table with a name and options."""
    options = dict(value) if isinstance(value, Mapping) else {"name": value}
    name = options.pop("name", None)
    if not isinstance(name, str):
        raise UsageError(f'write a list of names or of tables {{ name = "..." }}; there are {", ".join(ANALYSES)}')
    return make_analysis(name, **options)


def _sha256(text: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{64}", text):
        raise UsageError("is no SHA-256; write its 64 hexadecimal digits in lower case")
    return text


def _file_name(value: Any, check: Callable[[Any], str]) -> str:
    if isinstance(value, str):
        check(value.encode(errors="replace").decode())
        return value
    return check(value)


def _in_list(value: Any) -> Any:
    return [value] if isinstance(value, Mapping) else value


Entry = TypeVar("Entry")
Listed = Annotated[tuple[Entry, ...], Field(strict=False, max_length=_MAX_ENTRIES)]
OneOrMore = Annotated[Listed[Entry], BeforeValidator(_in_list)]

Text = Annotated[str, Field(max_length=_MAX_TEXT)]
# pydantic takes no text for one that is no UTF-8, as names of files may be.
FileName = Annotated[Text, WrapValidator(_file_name)]
Names = Annotated[Listed[Text], AfterValidator(_refusing(_once))]
Number = Annotated[float, Field(ge=-_LARGEST, le=_LARGEST, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Load = Annotated[float, Field(ge=0.01, le=100, allow_inf_nan=False)]
Seed = Annotated[int, Field(ge=0, le=2**63 - 1)]
Cases = Annotated[int, Field(ge=1, le=MAX_CASES)]
Sha256 = Annotated[str, AfterValidator(_refusing(_sha256))]
ByLogAndPolicy = dict[str, dict[str, Entry]]

Assumed = Annotated[str, AfterValidator(_refusing(lambda text: ",".join(map(str, parse_assumptions(text)))))]
PresetName = Annotated[str, AfterValidator(_refusing(lambda name: find_preset(name).name))]
Period = Annotated[str, AfterValidator(_refusing(_period))]
LongestRequest = Annotated[int, _of_text(_longest_request)]
Windows = Annotated[WindowSpec, _of_text(_windows)]
Beginning = Annotated[LeadIn, _of_text(parse_lead_in)]
Length = Annotated[int | None, _of_text(parse_length)]
Estimates = Annotated[EstimateRule, _of_text(parse_estimates)]
Waiting = Annotated[Threshold, _of_text(parse_threshold)]
Precise = Annotated[float, _of_text(parse_share)]
Recorded = Annotated[bool | Literal["if-known"], PlainValidator(_refusing(_recorded))]
AnalysisOf = Annotated[Any, PlainValidator(_refusing(_analysis))]


class OptionTable(BaseModel):
    """A table of a protocol: no other keys, no conversion between types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, arbitrary_types_allowed=True)
