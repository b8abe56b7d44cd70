"""From a policy to what a program or a scheduler loads; one module a target."""

from __future__ import annotations

from policyfactory.export.bundle import Export, File
from policyfactory.export.prepare import prepare
from policyfactory.export.registry import TARGETS
from policyfactory.export.site import Sample, Site
from policyfactory.export.targets import Target

__all__ = ["TARGETS", "Export", "File", "Sample", "Site", "Target", "prepare"]
