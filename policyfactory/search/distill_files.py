"""The folder of a distillation: two models, the picture and the report."""

from __future__ import annotations

from pathlib import Path

from policyfactory.core.artefact import dump_json
from policyfactory.core.files import atomic_write, together
from policyfactory.core.picture import keeps_settings, save_picture
from policyfactory.policy.store import save_model
from policyfactory.search.distill_picture import draw_agreement
from policyfactory.search.distill_result import Distilled

__all__ = ["MODEL", "write_distilled"]

MODEL, STATIC, PICTURE, REPORT = "policy.json", "static.json", "agreement.png", "report.json"


def write_distilled(found: Distilled, folder: Path) -> list[Path]:
    """Write the models of the choice and of the best static formula, the picture and the report together.

    Raises
    ------
    OutputError
        If one cannot be written; then none is.
    """
    paths = [folder / name for name in (MODEL, STATIC, PICTURE, REPORT)]
    with together():
        save_model(found.model, paths[0])
        save_model(found.static_model, paths[1])
        save_picture(keeps_settings(draw_agreement)(found), paths[2])
        atomic_write(paths[3], dump_json(found.as_dict()))
    return paths
