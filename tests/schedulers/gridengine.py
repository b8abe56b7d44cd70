"""A Grid Engine of one host on loopback, from Debian's packages: all of its files in one folder, and no root.

What it takes (found by trying): classic spooling, which needs nothing but files; ``SGE_ND`` so that daemons stay in the
foreground; the host's name and localhost as aliases, because 127.0.0.1 may be either; ``min_uid 0`` for tests that run
as root; a ``mailer`` that does nothing.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from getpass import getuser
from pathlib import Path
from typing import Self
from xml.etree import ElementTree as ET

from schedulers.processes import Daemons, free_ports, kill_marked, require, run_command, wait_for

PROGRAMS = ("sge_qmaster", "sge_execd", "qconf", "qsub", "qstat", "qdel")
_LIBRARY = Path("/usr/lib/gridengine")
_RESOURCES = Path("/usr/share/gridengine/util/resources")


class Cell:
    """One qmaster and one execution daemon with ``slots`` slots; a context manager that ends both and their jobs.

    Jobs ask for the consumable ``machine``, of which there is one, so that one job runs at a time, whatever its size:
    Grid Engine lets a job that fits pass one that does not.

    Parameters
    ----------
    folder : Path
        Empty, with a short name (`short_directory`).
    slots : int
        Of the queue.
    """

    def __init__(self, folder: Path, *, slots: int = 64) -> None:
        require(*PROGRAMS)
        self.folder, self.slots = folder, slots
        self.common = folder / "default/common"
        self.spool = folder / "spool"
        for path in (self.common, self.spool / "qmaster", self.spool / "execd", folder / "log", folder / "out"):
            path.mkdir(parents=True)
        (folder / "util").symlink_to("/usr/share/gridengine/util")
        host, port = socket.gethostname().split(".")[0], free_ports(2)
        architecture = subprocess.run([folder / "util/arch"], capture_output=True, text=True, check=True).stdout.strip()
        for name in ("bin", "lib", "utilbin"):
            (folder / name).mkdir()
            (folder / name / architecture).symlink_to(_LIBRARY)
        self.host = host
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("SGE_", "JOB_", "PE_"))
        } | {
            "SGE_ROOT": str(folder),
            "SGE_CELL": "default",
            "SGE_QMASTER_PORT": str(port),
            "SGE_EXECD_PORT": str(port + 1),
            "SGE_ND": "1",
            "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin",
        }
        self.daemons = Daemons(folder / "log", self.environment)
        self._write_bootstrap()

    def _write_bootstrap(self) -> None:
        spooling = f"{self.common};{self.spool}/qmaster"
        (self.common / "bootstrap").write_text(
            f"admin_user {getuser()}\ndefault_domain none\nignore_fqdn false\n"
            f"spooling_method classic\nspooling_lib libspoolc\nspooling_params {spooling}\n"
            f"binary_path {self.folder}/bin\nqmaster_spool_dir {self.spool}/qmaster\nsecurity_mode none\n"
            "listener_threads 2\nworker_threads 2\nscheduler_threads 1\n"
        )
        (self.common / "act_qmaster").write_text(f"{self.host}\n")
        (self.common / "host_aliases").write_text(f"{self.host} localhost\n")
        own = {
            "execd_spool_dir": f"{self.spool}/execd",
            "mailer": "/bin/true",
            "administrator_mail": "none",
            "min_uid": "0",
            "min_gid": "0",
            "load_report_time": "00:00:02",
        }
        standard = Path("/usr/share/gridengine/default-configuration").read_text().splitlines()
        lines = [
            f"{key} {own.get(key, value)}"
            for key, value in (line.split(None, 1) for line in standard if line[0] != "#")
        ]
        (self.folder / "configuration").write_text("\n".join(lines) + "\n")
        self.run(_LIBRARY / "spoolinit", "classic", "libspoolc", spooling, "init")
        defaults = _LIBRARY / "spooldefaults"
        self.run(defaults, "configuration", self.folder / "configuration")
        self.run(defaults, "complexes", _RESOURCES / "centry")
        self.run(defaults, "usersets", _RESOURCES / "usersets")
        self.run(defaults, "managers", getuser())

    def __enter__(self) -> Self:
        try:
            self.daemons.start("qmaster", [shutil.which("sge_qmaster", path="/usr/sbin:/usr/bin") or "sge_qmaster"])
            wait_for("sge_qmaster", self._is_manager, 60)
            self._try("qconf", "-ah", self.host)
            self._try("qconf", "-as", self.host)
            self.daemons.start("execd", [shutil.which("sge_execd", path="/usr/sbin:/usr/bin") or "sge_execd"])
            wait_for("sge_execd", lambda: self.host in self._try("qconf", "-sel"), 60)
            self._configure()
            wait_for(
                "the queue", lambda: f"0/0/{self.slots}" in self._try("qstat", "-f") and not self._is_alarmed(), 60
            )
        except BaseException as error:
            self.__exit__()
            if isinstance(error, TimeoutError | RuntimeError):
                raise RuntimeError(f"Grid Engine did not start: {error}\n{self.daemons.output()}") from error
            raise
        return self

    def _is_manager(self) -> bool:
        return getuser() in self._try("qconf", "-sm").split()

    def _is_alarmed(self) -> bool:
        return "-NA-" in self._try("qstat", "-f")

    def _configure(self) -> None:
        """Add the parallel environment, the consumable, the queue; schedule at once."""
        self._change("pe", "-Ap", "", _PARALLEL)
        complexes = [line for line in self.run("qconf", "-sc").splitlines() if not line.startswith("#")]
        self._change("complexes", "-Mc", "", "\n".join([*complexes, "machine machine INT <= YES JOB 0 0", ""]))
        queue = self.run("qconf", "-sq")
        own = {
            "qname": "all.q",
            "hostlist": self.host,
            "load_thresholds": "NONE",
            "pe_list": "mpi",
            "slots": str(self.slots),
            "shell": "/bin/sh",
            "complex_values": "machine=1",
        }
        self._change("queue", "-Aq", queue, "", own)
        fast = {
            "schedule_interval": "0:0:1",
            "flush_submit_sec": "1",
            "flush_finish_sec": "1",
            "job_load_adjustments": "NONE",
        }
        self._change("scheduler", "-Msconf", self.run("qconf", "-ssconf"), "", fast)

    def _change(self, name: str, option: str, shown: str, more: str, own: dict[str, str] | None = None) -> None:
        lines = [line.split(None, 1) for line in shown.splitlines() if line and not line.startswith("#")]
        text = "".join(f"{key} {(own or {}).get(key, value)}\n" for key, value in lines) + more
        (self.folder / name).write_text(text)
        self.run("qconf", option, self.folder / name)

    def __exit__(self, *_: object) -> None:
        try:
            if self.daemons.alive("qmaster"):
                self._try("qdel", "-f", "-u", getuser())
        finally:
            # Asked to end, the qmaster takes ten seconds over it.
            kill_marked(f"SGE_ROOT={self.folder}")
            self.daemons.stop_all()

    def _try(self, *command: object) -> str:
        return self.run(*command, check=False)

    def run(self, *command: object, check: bool = True) -> str:
        """Return what a command prints; without ``check``, its errors too."""
        return run_command(command, self.environment | {"SGE_SINGLE_LINE": "1"}, self.folder / "out", check=check)

    def submit(self, slots: int, seconds: int | None, *options: object, body: str = "") -> int:
        """Submit a job, which notes its start, and return its id; without ``seconds`` it asks for no limit."""
        limit = [] if seconds is None else ["-l", f"h_rt={seconds}"]
        size = ["-pe", "mpi", slots] if slots > 1 else []
        script = self.folder / "job.sh"
        script.write_text(f'#!/bin/sh\necho "$JOB_ID" >> {self.folder}/out/starts\n{body}\n')
        quiet = ["-terse", "-S", "/bin/sh", "-o", "/dev/null", "-j", "y", "-l", "machine=1"]
        return int(self.run("qsub", *quiet, *limit, *size, *options, script).strip().split(".")[0])

    def hold_all(self) -> int:
        """Start a job that has the machine, so that what is submitted next has to wait; return its id."""
        job = self.submit(1, 36_000, body="sleep 3600")
        wait_for("the blocker", lambda: job in self.states("r"))
        return job

    def states(self, letter: str) -> set[int]:
        """Return the jobs in the states that ``qstat -s`` calls ``letter``: r running, p pending."""
        root = ET.fromstring(self.run("qstat", "-xml", "-s", letter))
        return {int(element.text or 0) for element in root.iter("JB_job_number")}

    def requests(self, job: int) -> dict[str, float]:
        """Return the hard requests of a job, its slots and its submit time, as the qmaster has them."""
        root = ET.fromstring(self.run("qstat", "-xml", "-j", job))
        result = {
            element.findtext("CE_name") or "": float(element.findtext("CE_doubleval") or 0)
            for element in root.iter()
            if element.find("CE_name") is not None
        }
        slots = [int(element.findtext("RN_min") or 1) for element in root.iter("ranges")]
        result["slots"] = slots[0] if slots else 1
        result["submit"] = float(root.findtext(".//JB_submission_time") or 0)
        return result

    def order(self) -> list[int]:
        """Return the waiting jobs in the order in which the scheduler looks at them."""
        root = ET.fromstring(self.run("qstat", "-xml", "-s", "p"))
        return [int(element.text or 0) for element in root.iter("JB_job_number")]

    def started(self) -> list[int]:
        """Return the jobs in the order of their starts, as they noted them: accounting is late, in seconds."""
        notes = self.folder / "out/starts"
        return [int(line) for line in notes.read_text().split()] if notes.exists() else []


_PARALLEL = """pe_name mpi
slots 99999
user_lists NONE
xuser_lists NONE
start_proc_args NONE
stop_proc_args NONE
allocation_rule $fill_up
control_slaves TRUE
job_is_first_task TRUE
urgency_slots min
accounting_summary FALSE
qsort_args NONE
"""
