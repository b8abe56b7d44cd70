"""Pictures: one look, no display needed, the same bytes for the same data.

Whatever matplotlib was told by its files, by the environment or by the user: what is not of our style is as in
matplotlib's own defaults, and the user's settings are afterwards what they were.
"""

from __future__ import annotations

import functools
import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from policyfactory.core.errors import OutputError
from policyfactory.core.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette: distinct also for colour-blind readers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, YELLOW, BLACK = COLOURS

_STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titley": 1.0,  # where it is anyway, as nothing stands above axes: it is not looked for in each drawing
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    # Text is drawn as typed: a $ in a name from a log is a dollar, not mathematics.
    "text.parse_math": False,
    "svg.hashsalt": "policyfactory",
    "svg.fonttype": "path",
}


P = ParamSpec("P")
R = TypeVar("R")


@functools.cache
def _settings() -> dict[Any, Any]:
    """Return all settings of matplotlib, but for the program that shows pictures."""
    from cycler import cycler
    from matplotlib import rcParamsDefault

    defaults = {name: value for name, value in rcParamsDefault.items() if not name.startswith("backend")}
    return {**defaults, **_STYLE, "axes.prop_cycle": cycler(color=COLOURS)}


def keeps_settings(draw: Callable[P, R]) -> Callable[P, R]:
    """Leave matplotlib's settings as they were when ``draw``, which makes pictures of our look, returns."""

    @functools.wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> R:
        from matplotlib import rc_context

        with rc_context():
            _take_settings()
            return draw(*args, **kwargs)

    return drawn


def _take_settings() -> None:
    """Set ours, unless they are set: matplotlib checks each value it is given."""
    from matplotlib import rcParams

    if any(dict.get(rcParams, name) != value for name, value in _settings().items()):
        rcParams.update(_settings())


def new_figure(width: float = 7.0, height: float = 4.0) -> Figure:
    """Return an empty figure of ``width`` x ``height`` inches with constrained layout."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # Axes take their look when they are made, texts and ticks when drawn: the style holds until
    # what the user called returns (`keeps_settings`), and again when it is written.
    _take_settings()
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def plain_numbers(axis: Any, *, minor: bool = True) -> None:
    """Write the numbers of an axis as they are, with commas, also on a logarithmic scale.

    Parameters
    ----------
    axis : Axis
        ``axes.xaxis`` or ``axes.yaxis``.
    minor : bool
        Whether the minor ticks keep their numbers.
    """
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.12g}"))
    if not minor:
        axis.set_minor_formatter(NullFormatter())


def save_picture(figure: Figure, path: Path, *, dpi: int = 150) -> Path:
    """Write ``figure`` as PNG, SVG or PDF (by the suffix of ``path``), without a date in it.

    Also a figure that was made long ago: matplotlib looks at its settings once more when it writes. What
    ``figure.savefig`` writes has the date, and in an SVG other ids each time.

    Raises
    ------
    OutputError
        If the suffix is none of these or the file cannot be written.
    """
    kind = path.suffix.lstrip(".").lower()
    if kind not in {"png", "svg", "pdf"}:
        raise OutputError(f"{path}: a picture is .png, .svg or .pdf, not {path.suffix!r}; change the suffix")
    atomic_write(path, _bytes(figure, kind, dpi))
    return path


def svg_bytes(figure: Figure) -> bytes:
    """Return ``figure`` as SVG, without a date in it."""
    return _bytes(figure, "svg", 150)


def _bytes(figure: Figure, kind: str, dpi: int) -> bytes:
    from matplotlib import rc_context

    # What would differ from run to run is left out.
    undated = {"svg": "Date", "pdf": "CreationDate"}.get(kind, "Software")
    metadata: dict[str, Any] = {undated: None}
    buffer = io.BytesIO()
    # The ids in an SVG and the ticks are made now.
    with warnings.catch_warnings(), rc_context():
        _take_settings()
        # A name from a log may have letters that the font has not: a box is drawn, and there is no cure.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        # With a layout of its own, matplotlib would draw the whole figure once for the layout and once for the file.
        if layout := figure.get_layout_engine():
            layout.execute(figure)
        figure.set_layout_engine(None)
        try:
            figure.savefig(buffer, format=kind, dpi=dpi, metadata=metadata)
        finally:
            figure.set_layout_engine(layout)
    return buffer.getvalue()
