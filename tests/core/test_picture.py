"""Pictures have the same bytes whatever files, environment and user tell matplotlib."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import pytest

from policyfactory.core import picture
from support import ROOT

SETTINGS = {
    "text.usetex": "True", "font.size": "23", "font.family": "monospace", "savefig.bbox": "tight", "savefig.dpi": "31",
    "savefig.transparent": "True", "savefig.facecolor": "red", "axes.formatter.limits": "0, 1",
    "axes.formatter.useoffset": "False", "axes.unicode_minus": "False", "axes.prop_cycle": "cycler('color', ['r'])",
    "axes.xmargin": "0.4", "svg.fonttype": "none", "svg.hashsalt": "x", "svg.image_inline": "False",
    "pdf.compression": "0", "pdf.fonttype": "42", "path.sketch": "2, 50, 9", "path.simplify": "False",
    "lines.linewidth": "9", "lines.markersize": "20", "agg.path.chunksize": "7", "figure.dpi": "31",
    "figure.facecolor": "green", "legend.fontsize": "30", "xtick.labelsize": "3", "grid.linestyle": ":",
    "timezone": "Asia/Tokyo", "image.cmap": "gray", "hatch.linewidth": "9", "text.hinting": "none",
    "text.antialiased": "False", "axes.formatter.use_locale": "True", "date.autoformatter.day": "%d",
}  # fmt: skip
ENVIRONMENT = {
    "SOURCE_DATE_EPOCH": "1000000", "LANG": "xx_XX.UTF-8", "LC_ALL": "C", "TZ": "Asia/Tokyo", "COLUMNS": "40",
    "PYTHONHASHSEED": "7", "NO_COLOR": "1", "MPLBACKEND": "pdf",
}  # fmt: skip

DRAW = """
import sys
from pathlib import Path
if sys.argv[2] == "command":
    from policyfactory.core.process import ignore_folder
    ignore_folder()
from policyfactory.core.picture import keeps_settings, new_figure, plain_numbers, save_picture

@keeps_settings
def draw():
    figure = new_figure()
    left, right, image = figure.subplots(1, 3)
    left.plot([1, 2e5, -3], [4, 1, 1e-7], "o-", label="a $name$")
    left.legend()
    left.set_title("x^2 -> \\N{MINUS SIGN}7")
    right.fill_between([1, 2, 3], [1, 2, 1], hatch="//")
    right.set(xscale="log", yscale="log")
    image.imshow([[1, 2], [3, 4]])
    plain_numbers(right.xaxis)
    return figure

for kind in ("svg", "png", "pdf"):
    save_picture(draw(), Path(sys.argv[1]) / f"picture.{kind}")
"""


def drawn(script: Path, folder: Path, who: str, **environment: str) -> list[bytes]:
    """Draw in a process of its own, in a folder; return the bytes of each picture."""
    done = subprocess.run(
        [sys.executable, script, folder, who], cwd=folder, capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert who == "user" or done.stderr == ""
    return [(folder / f"picture.{kind}").read_bytes() for kind in ("svg", "png", "pdf")]


@pytest.fixture(scope="module")
def script(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("script") / "script.py"
    path.write_text(DRAW)
    return path


@pytest.fixture(scope="module")
def plain(tmp_path_factory, script) -> list[bytes]:
    return drawn(script, tmp_path_factory.mktemp("plain"), "user")


def rc_file(*more: str) -> str:
    return "\n".join([*(f"{name}: {value}" for name, value in SETTINGS.items()), *more, ""])


@pytest.mark.slow
@pytest.mark.parametrize("who", ["user", "command"])
def test_a_settings_file_in_the_folder_changes_no_byte(tmp_path, script, plain, who):
    without_locale = rc_file("a nonsense line", "more: nonsense: here").replace("use_locale: True", "use_locale: False")
    (tmp_path / "matplotlibrc").write_text(without_locale if who == "user" else rc_file("a nonsense line"))
    assert drawn(script, tmp_path, who) == plain


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"font.size: \xff\xfe", None])
def test_a_command_reads_no_settings_file(tmp_path, script, plain, content):
    rc = tmp_path / "matplotlibrc"
    rc.write_bytes(content) if content is not None else os.mkfifo(rc)
    (tmp_path / "settings").write_bytes(b"\xff\xfe")
    environment = {"MATPLOTLIBRC": str(tmp_path / "settings"), "MPLBACKEND": "nonsense"}
    assert drawn(script, tmp_path, "command", **environment) == plain


@pytest.mark.slow
def test_the_environment_changes_no_byte(tmp_path, script, plain):
    assert drawn(script, tmp_path, "command", **ENVIRONMENT) == plain


def test_the_settings_of_the_user_change_no_byte_and_are_kept(tmp_path):
    def draw():
        figure = picture.new_figure()
        figure.subplots().plot([1, 2e6], [3, 4], label="a")
        return figure

    kept = picture.keeps_settings(draw)
    plain = picture.svg_bytes(kept())
    with mpl.rc_context({"text.usetex": True, "font.size": 30, "lines.linewidth": 9, "path.sketch": (2, 50, 9)}):
        before = dict(mpl.rcParams)
        assert picture.svg_bytes(kept()) == plain
        assert dict(mpl.rcParams) == before
