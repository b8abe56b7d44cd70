"""Pictures as SVG that may stand inside a page: drawn once, reduced to shapes, names made unique.

matplotlib's SVG is rebuilt from an allow-list of elements and attributes. What is left can neither load nor run
anything; comments (they hold the texts of the picture) and metadata are dropped, style attributes become presentation
attributes (a page may then forbid inline styles), and coordinates are rounded to a hundredth of a point.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from policyfactory.core.picture import keeps_settings, svg_bytes
from policyfactory.core.text import html_text

if TYPE_CHECKING:
    from policyfactory.report.sections import Picture

__all__ = ["Drawings"]

_HREF = "{http://www.w3.org/1999/xlink}href"
_ELEMENTS = frozenset({"g", "defs", "path", "use", "clipPath", "rect", "circle", "ellipse", "line", "image", "pattern"})
_ATTRIBUTES = frozenset({
    "clip-path", "clip-rule", "cx", "cy", "d", "fill", "fill-opacity", "fill-rule", "height", "image-rendering",
    "opacity", "patternTransform", "patternUnits", "preserveAspectRatio", "r", "rx", "ry", "stroke",
    "stroke-dasharray", "stroke-dashoffset", "stroke-linecap", "stroke-linejoin", "stroke-miterlimit",
    "stroke-opacity", "stroke-width", "transform", "width", "x", "x1", "x2", "y", "y1", "y2"
})  # fmt: skip
_ROUNDED = frozenset({"d", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height"})
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_NAMES = re.compile(r'(?<= id=")|(?<= xlink:href="#)|(?<=="url\(#)')


class Drawings:
    """Pictures that were drawn, each once."""

    def __init__(self) -> None:
        self._drawn: dict[Picture, tuple[str, str]] = {}

    def file(self, picture: Picture) -> str:
        """Return ``picture`` as the text of an SVG file."""
        size, shapes = self._parts(picture)
        namespaces = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
        title = f"<title>{html_text(picture.title)}</title>"
        return f'<?xml version="1.0" encoding="utf-8"?>\n<svg {namespaces} {size}>{title}{shapes}</svg>\n'

    def inline(self, picture: Picture, prefix: str) -> str:
        """Return ``picture`` as an element of a page.

        Parameters
        ----------
        picture : Picture
            What to draw; its title is read out by a screen reader.
        prefix : str
            Put before its identifiers, so that those of two pictures in one page do not meet.
        """
        size, shapes = self._parts(picture)
        label = html_text(picture.title)
        return f'<svg role="img" aria-label="{label}" {size}>{_NAMES.sub(prefix, shapes)}</svg>'

    @keeps_settings
    def _parts(self, picture: Picture) -> tuple[str, str]:
        if picture not in self._drawn:
            self._drawn[picture] = _reduced(svg_bytes(picture.draw()))
        return self._drawn[picture]


def _reduced(svg: bytes) -> tuple[str, str]:
    """Return the size (attributes of the outermost element) and the shapes in it."""
    # matplotlib has just written it: no entities or external parts of a stranger's making.
    root = ET.fromstring(svg)  # noqa: S314
    text = svg.decode()
    used = set(re.findall(r'(?:xlink:href="#|url\(#)([^")]+)', text))
    size = " ".join(f'{name}="{html_text(root.get(name, ""))}"' for name in ("width", "height", "viewBox"))
    # Lines end as matplotlib's style sheet says; that sheet is not taken over.
    body = "".join(_text(child, used) for child in root)
    return size, f'<g stroke-linejoin="round" stroke-linecap="butt">{body}</g>'


def _text(element: ET.Element, used: set[str]) -> str:
    tag = element.tag.rpartition("}")[2]
    if tag not in _ELEMENTS:
        return ""
    attributes = {name: value for name, value in element.attrib.items() if name in _ATTRIBUTES}
    for rule in element.get("style", "").split(";"):
        name, _, value = rule.partition(":")
        if name.strip() in _ATTRIBUTES:
            attributes[name.strip()] = value.strip()
    if element.get("id") in used:
        attributes["id"] = element.get("id", "")
    target = element.get(_HREF, "")
    if target.startswith("data:image/png;base64," if tag == "image" else "#"):
        attributes["xlink:href"] = target
    elif tag in {"image", "use"}:
        return ""
    written = "".join(f' {name}="{html_text(_rounded(name, value))}"' for name, value in attributes.items())
    inside = "".join(_text(child, used) for child in element)
    if tag in {"g", "defs"} and not inside:
        return ""
    if tag == "g" and not attributes:
        return inside
    return f"<{tag}{written}>{inside}</{tag}>" if inside else f"<{tag}{written}/>"


def _rounded(name: str, value: str) -> str:
    if name not in _ROUNDED:
        return " ".join(value.split())
    return " ".join(_LONG_NUMBER.sub(lambda match: f"{float(match.group()):.2f}", value).split())
