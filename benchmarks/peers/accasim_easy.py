"""Run AccaSim's EASY backfilling on a log, and say what it cost; peers.py starts this in an environment of its own.

    python accasim_easy.py LOG.swf PROCESSORS RESULT.json

AccaSim 1.1.3 takes names from ``collections`` that Python 3.10 moved: they are put back here, the package stays as it
is. Nodes have one core each, as every processor of the log counts alone.
"""

from __future__ import annotations

import collections
import collections.abc
import contextlib
import io
import json
import os
import sys
import time
from pathlib import Path


def main(log: str, processors: int, result: Path) -> None:
    for name in ("Mapping", "MutableMapping", "Sequence", "Iterable", "Callable"):
        setattr(collections, name, getattr(collections.abc, name))
    from accasim.base.allocator_class import FirstFit
    from accasim.base.scheduler_class import EASYBackfilling
    from accasim.base.simulator_class import Simulator

    config = result.with_suffix(".config.json")
    config.write_text(
        json.dumps(
            {
                "groups": {"g0": {"core": 1}},
                "resources": {"g0": processors},
                "equivalence": {"processor": {"core": 1}},
                "start_time": 0,
            }
        )
    )
    with contextlib.redirect_stdout(io.StringIO()):
        simulator = Simulator(
            log,
            str(config),
            EASYBackfilling(FirstFit()),
            scheduling_output=True,
            statistics_output=False,
            show_statistics=False,
            RESULTS_FOLDER_PATH=str(result.parent),
        )
        begin = time.process_time()
        files = simulator.start_simulation()
        spent = time.process_time() - begin
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    times = os.times()
    actual = {"simulation": spent, "process": times.user + times.system, "peak_kib": peak, "files": files}
    result.write_text(json.dumps(actual))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
