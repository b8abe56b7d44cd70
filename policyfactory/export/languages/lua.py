"""A policy as a Lua module, for Lua 5.1 to 5.4 (Slurm's job_submit plugin runs one of them)."""

from __future__ import annotations

import math

from policyfactory.export.languages.code import Language, helpers_of, write_expression
from policyfactory.export.scripts import parts
from policyfactory.export.targets import Export, Site, Target, header, single_file
from policyfactory.policy.store import Model

__all__ = ["LANGUAGE", "TARGET", "make", "render"]

LANGUAGE = Language("pf_", parts("helpers.lua"), divides=True)


def render(model: Model, site: Site) -> str:
    """Return Lua source of a module table with ``score(p, q, r, w, m)``; it sets no global."""
    policy = model.policy
    counts = "r" in policy.variables
    threshold = "math.huge" if math.isinf(policy.threshold) else repr(policy.threshold)
    epoch = "nil" if policy.epoch.unix_time is None else str(policy.epoch.unix_time)
    parts = [
        *(f"-- {line}".rstrip() for line in header(model, site, "lua")),
        "",
        *helpers_of(policy.expression, LANGUAGE),
        "local M = {}",
        f"M.name = {_quoted(policy.name)}",
        f"M.formula = {_quoted(policy.formula)}",
        *([f"M.epoch_rule = {_quoted(policy.epoch.rule)}", f"M.epoch_unix = {epoch}"] if counts else []),
        f"M.threshold_s = {threshold}",
        "",
        "-- The score of a job; the job with the lowest runs first.",
        "function M.score(p, q, r, w, m)",
        "  -- Adding 0.0 makes a double of a whole number, whose products would wrap around.",
        "  p, q, r, w, m = p + 0.0, q + 0.0, (r or 0) + 0.0, (w or 0) + 0.0, (m or 1) + 0.0",
        f"  local value = {write_expression(policy.expression, LANGUAGE)}",
        "  if value ~= value then return math.huge end",
        "  return value",
        "end",
        "",
        "return M",
    ]
    return "\n".join(parts) + "\n"


def _quoted(text: str) -> str:
    """Return a Lua string of the UTF-8 bytes of ``text``; every byte that is no plain ASCII is written as a number."""
    plain = set(range(32, 127)) - set(b'"\\')
    return '"' + "".join(chr(b) if b in plain else f"\\{b:03d}" for b in text.encode("utf-8", "replace")) + '"'


def make(model: Model, site: Site) -> Export:
    """Return the file."""
    return single_file(model, ".lua", render(model, site))


TARGET = Target("lua", "Lua 5.1 to 5.4 module with the function score(p, q, r, w, m)", make)
