"""Before a site is believed: each log's own jobs are replayed on it, and their waits compared with the record."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from policyfactory.core.errors import EvaluationError
from policyfactory.core.progress import WorkCounter
from policyfactory.core.text import anchors
from policyfactory.fidelity.compare import fidelity, has_record
from policyfactory.fidelity.found import Fidelity
from policyfactory.fidelity.words import HEADINGS, in_short, sections_of, verdict_of
from policyfactory.parallel.workers import Notify
from policyfactory.report.sections import Section
from policyfactory.report.verdict import Light, Verdict
from policyfactory.simulate.rules import Rules
from policyfactory.workload.jobs import Workload

__all__ = ["gate_in_words", "gate_sections", "gated", "gates_as_dict", "headed", "refuse_runaway", "replay_logs"]


def replay_logs(
    rules: Rules,
    logs: Mapping[str, Workload],
    notify: Notify = lambda _: None,
    counter: Callable[[], WorkCounter] = WorkCounter,
) -> dict[str, Fidelity]:
    """Return how near the site of some rules is to the record of each log, by the log's name.

    Parameters
    ----------
    rules : Rules
        Without a site of somebody's own nothing is replayed: what is assumed of a log is nobody's cluster.
    logs : mapping of str to Workload
        One whose jobs have no recorded starts is left out.
    notify : callable
        Called with a sentence for each log.
    counter : callable
        Returns who counts how far a replay is, in % of its jobs.

    Raises
    ------
    EvaluationError
        If a log is another cluster's or cannot be simulated on the site.
    """
    site = rules.site
    if site is None or site.assumed:
        return {}
    found = {}
    for log, jobs in logs.items():
        if not has_record(jobs):
            notify(f"{log}: no recorded starts, so that nothing shows how near the simulation of {site.name} is")
            continue
        found[log] = fidelity(jobs, site, progress=_in_percent(counter(), len(jobs)))
        notify(f"{log}, its own jobs replayed on {site.name}: {in_short(found[log])}")
    return found


def refuse_runaway(gates: Iterable[Mapping[str, Fidelity]]) -> None:
    """Refuse to simulate policies where the queue of a log's own jobs runs away: each would take hours.

    Raises
    ------
    EvaluationError
        With what holds the jobs.
    """
    for found in (one for gate in gates for one in gate.values()):
        if found.stopped:
            raise EvaluationError(
                f"{found.workload}: {' '.join(verdict_of(found).sentences)} No policy was simulated; policyfactory "
                "site replay shows the same"
            )


def _in_percent(counter: WorkCounter, jobs: int) -> Callable[[int], None]:
    """Return what notes how many of the jobs are done."""
    counter.expect(100)
    done = 0

    def note(now: int) -> None:
        nonlocal done
        while done < 100 * now // max(jobs, 1):
            done += 1
            counter.done(jobs // 100)

    return note


def gated(light: Light, sentences: tuple[str, ...], found: Fidelity | None) -> tuple[Light, tuple[str, ...]]:
    """Return a light and its sentences as far as the site is to be trusted.

    Parameters
    ----------
    light : Light
        What the policies' numbers say.
    sentences : tuple of str
        Why.
    found : Fidelity or None
        How near the site's simulation is to the record; None: nothing was replayed.
    """
    if found is None or found.trusted:
        return light, sentences
    verdict = verdict_of(found)
    if found.light == "far":
        return "unsound", (*verdict.sentences, "No policy is recommended.")
    if light != "better":
        return light, sentences
    why = f"{HEADINGS['cannot tell']}: {verdict.sentences[0]}"
    return "cannot tell", (f"{why} No policy is recommended.", *sentences)


def gate_in_words(found: Fidelity | None) -> tuple[str, ...]:
    """Return in a sentence what the replay of a log says; nothing where none was replayed."""
    if found is None:
        return ()
    return (f"the log's own jobs, replayed on site {found.site}: {in_short(found)}",)


def headed(verdict: Verdict, found: Iterable[Fidelity]) -> Verdict:
    """Return a verdict under the heading of a site that is not to be trusted, if all logs say so."""
    lights = {one.light for one in found}
    return dataclasses.replace(verdict, heading=HEADINGS["far"]) if lights == {"far"} else verdict


def gate_sections(found: Mapping[str, Fidelity]) -> tuple[Section, ...]:
    """Return the sections of all logs; of several each has the log in its name and title."""
    if len(found) == 1:
        return tuple(section for one in found.values() for section in sections_of(one))
    return tuple(
        dataclasses.replace(section, name=f"{section.name}-{stem}", title=f"{log}: {section.title}")
        for (log, one), stem in zip(found.items(), anchors(found), strict=True)
        for section in sections_of(one)
    )


def gates_as_dict(found: Mapping[str, Fidelity]) -> dict[str, Any]:
    """Return what was found as JSON values, with its key; nothing where nothing was replayed."""
    return {"fidelity": {log: one.as_dict() for log, one in found.items()}} if found else {}
