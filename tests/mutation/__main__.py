"""The command: ``python -m mutation``."""

from __future__ import annotations

import os
import sys

# Before numpy: threads of BLAS on small matrices would only wait for each other, and a fork does not take them along.
for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("MPLBACKEND", "Agg")

from mutation.command import main  # noqa: E402 (see above)

os.nice(19)
sys.exit(main(sys.argv[1:]))
