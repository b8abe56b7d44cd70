"""Learn the sort keys of HPC batch schedulers, test them on real logs and hand them over.

The package follows one line of data flow, a folder a stage, and has a verb for each step::

    log = pf.read("LOG.swf.gz")              schedule = pf.simulate(log, "SAF", threshold="20h")
    scores = pf.generate(log, tuples=200)    fits = pf.fit(scores)
    learned = pf.learn(log)

The names below are the public interface. They are loaded on first use, so that importing the package (and
``policyfactory --version``) costs nothing.
"""

from __future__ import annotations

import lazy_loader

from policyfactory.core.version import __version__ as __version__

# What is public, and where it is, stands in the stub beside this file.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
