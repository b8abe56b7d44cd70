"""The folder of a run: the model, the history, the learning curve and the report."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

from policyfactory.core.artefact import dump_json
from policyfactory.core.files import atomic_write, together
from policyfactory.core.picture import keeps_settings, save_picture
from policyfactory.core.text import csv_text
from policyfactory.policy.store import save_model

if TYPE_CHECKING:
    from policyfactory.search.result import Trained

__all__ = ["FRONT_PICTURE", "HISTORY", "MODEL", "PICTURE", "REPORT", "history_csv", "write_result"]

MODEL, HISTORY, PICTURE, REPORT = "policy.json", "history.csv", "learning.png", "report.json"
FRONT_PICTURE = "front.png"


def write_result(trained: Trained, folder: Path) -> list[Path]:
    """Write all files of a run together, and return them.

    Raises
    ------
    OutputError
        If one cannot be written; then none is.
    """
    from policyfactory.search.picture import draw_learning

    paths = [folder / name for name in (MODEL, HISTORY, PICTURE, REPORT)]
    with together():
        save_model(trained.model, paths[0])
        atomic_write(paths[1], history_csv(trained))
        save_picture(keeps_settings(draw_learning)(trained), paths[2])
        atomic_write(paths[3], dump_json(trained.as_dict()))
        if trained.members:
            from policyfactory.search.front import FRONT, front_json
            from policyfactory.search.front_picture import draw_front

            paths += [folder / FRONT, folder / FRONT_PICTURE]
            atomic_write(paths[-2], dump_json(front_json(trained)))
            save_picture(keeps_settings(draw_front)(trained), paths[-1])
    return paths


def history_csv(trained: Trained) -> str:
    """Return the history as CSV: a line a step."""
    rows = trained.learned.history
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if rows:
        writer.writerow(rows[0])
        for row in rows:
            writer.writerow([_cell(value) for value in row.values()])
    return text.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return ""
    return csv_text(value) if isinstance(value, str) else repr(value)
