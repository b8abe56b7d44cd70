"""A Slurm of fake nodes on loopback, from Debian's packages: no root, no munge, no cgroups.

What it takes (found by trying): daemons called slurmctld and slurmd (they ask for their own program name), a short
directory (Unix sockets), every path in it, ``config_overrides`` for processors that the host does not have, and several
slurmd on one host, told apart by node name and port.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import time
from collections.abc import Iterable, Sequence
from getpass import getuser
from pathlib import Path
from typing import Self

from schedulers.processes import Daemons, free_ports, kill_marked, require, run_command, wait_for

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "scontrol", "squeue", "scancel")
_SCHEDULER = (
    "sched_interval=1,sched_min_interval=0,batch_sched_delay=0,bf_interval=1,bf_window=10080,bf_continue,"
    "default_queue_depth=1000,partition_job_depth=1000"
)


class Cluster:
    """One slurmctld and ``nodes`` slurmd; a context manager that ends all of them and their jobs.

    Parameters
    ----------
    folder : Path
        Empty, with a short name (`short_directory`).
    nodes, processors : int
        Fake nodes, and processors of each.
    scheduler : {"builtin", "backfill"}
        SchedulerType.
    parameters : str
        More SchedulerParameters, separated by commas.
    lines : iterable of str
        More lines for slurm.conf; a line replaces the standard one of the same key, but for NodeName and PartitionName,
        which are added. ``None`` in place of the standard partition: see ``partitions``.
    partitions : iterable of str
        The PartitionName lines; the first is the default of the tests, called batch.
    files : mapping of str to str
        Files beside slurm.conf: ``{"job_submit.lua": text}``.
    """

    def __init__(
        self,
        folder: Path,
        *,
        nodes: int = 4,
        processors: int = 16,
        scheduler: str = "builtin",
        parameters: str = "",
        lines: Iterable[str] = (),
        partitions: Iterable[str] | None = None,
        files: dict[str, str] | None = None,
    ) -> None:
        require(*PROGRAMS)
        self.folder, self.nodes, self.processors = folder, nodes, processors
        self.configuration = folder / "slurm.conf"
        self.log = folder / "log"
        for name in ("state", "spool", "log", "out", "bin"):
            (folder / name).mkdir()
        self.port = free_ports(nodes + 1)
        self._link_programs()
        for name, text in (files or {}).items():
            (folder / name).write_text(text)
        self.configuration.write_text(self._configuration(scheduler, parameters, list(lines), partitions))
        # A test run may itself be a job of a Slurm.
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "SBATCH_"))
        }
        self.environment |= {"SLURM_CONF": str(self.configuration), "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
        self.daemons = Daemons(self.log, self.environment)

    def _link_programs(self) -> None:
        for name in ("slurmctld", "slurmd", "slurmstepd"):
            # Debian's real files end in -wlm; the plain name may be the emulator's.
            result = shutil.which(f"{name}-wlm", path="/usr/sbin") or shutil.which(name, path="/usr/sbin:/usr/bin")
            (self.folder / "bin" / name).symlink_to(result or name)

    def _configuration(self, scheduler: str, parameters: str, more: list[str], partitions: Iterable[str] | None) -> str:
        host, user, folder = socket.gethostname().split(".")[0], getuser(), self.folder
        standard = {
            "ClusterName": "test",
            "SlurmctldHost": f"{host}(127.0.0.1)",
            "SlurmUser": user,
            "SlurmdUser": user,
            "AuthType": "auth/none",
            "CredType": "cred/none",
            "SlurmctldPort": str(self.port),
            "StateSaveLocation": f"{folder}/state",
            "SlurmdSpoolDir": f"{folder}/spool/%n",
            "SlurmctldPidFile": f"{folder}/slurmctld.pid",
            "SlurmdPidFile": f"{folder}/slurmd-%n.pid",
            "SlurmctldLogFile": f"{folder}/log/slurmctld.log",
            "SlurmdLogFile": f"{folder}/log/slurmd-%n.log",
            "SlurmctldDebug": "info",
            "SlurmdDebug": "info",
            "CommunicationParameters": "NoInAddrAny,NoCtldInAddrAny",
            "ProctrackType": "proctrack/pgid",
            "TaskPlugin": "task/none",
            "JobAcctGatherType": "jobacct_gather/none",
            "JobCompType": "jobcomp/filetxt",
            "JobCompLoc": f"{folder}/log/jobcomp.txt",
            "AccountingStorageType": "accounting_storage/none",
            "MpiDefault": "none",
            "SwitchType": "switch/none",
            "SelectType": "select/cons_tres",
            "SelectTypeParameters": "CR_CPU",
            "SlurmdParameters": "config_overrides",
            "ReturnToService": "2",
            "SlurmctldTimeout": "30",
            "SlurmdTimeout": "300",
            "InactiveLimit": "0",
            "KillWait": "2",
            "MinJobAge": "3600",
            "MaxJobCount": "20000",
            "PriorityType": "priority/multifactor",
            "SchedulerType": f"sched/{scheduler}",
            "SchedulerParameters": _SCHEDULER + (f",{parameters}" if parameters else ""),
        }
        lines = [f"{key}={value}" for key, value in (standard | dict(line.split("=", 1) for line in more)).items()]
        lines += [
            f"NodeName=n{i} NodeHostname={host} NodeAddr=127.0.0.1 Port={self.port + i} CPUs={self.processors} "
            "RealMemory=1000 State=UNKNOWN"
            for i in range(1, self.nodes + 1)
        ]
        nodes = f"n[1-{self.nodes}]"
        usual = (
            f"PartitionName=batch Nodes={nodes} Default=YES MaxTime=INFINITE DefaultTime=60 State=UP OverSubscribe=NO",
        )
        lines += [line.replace("ALLNODES", nodes) for line in (usual if partitions is None else partitions)]
        return "\n".join(lines) + "\n"

    @property
    def total(self) -> int:
        """Processors of the machine."""
        return self.nodes * self.processors

    @property
    def version(self) -> tuple[int, ...]:
        """Slurm's, (24, 11) for example."""
        return tuple(int(part) for part in self.run("sinfo", "--version").split()[-1].split(".")[:2])

    def __enter__(self) -> Self:
        try:
            self._start_controller()
            for i in range(1, self.nodes + 1):
                step = self.folder / "bin/slurmstepd"
                self.daemons.start(f"slurmd-n{i}", [self.folder / "bin/slurmd", "-D", "-d", step, "-N", f"n{i}"])
            wait_for("idle nodes", self._nodes_are_idle)
        except BaseException as error:
            self.__exit__()
            if isinstance(error, TimeoutError | RuntimeError):
                raise RuntimeError(f"Slurm did not start: {error}\n{self.daemons.output()}") from error
            raise
        return self

    def _start_controller(self) -> None:
        self.daemons.start("slurmctld", [self.folder / "bin/slurmctld", "-D"])

    def _nodes_are_idle(self) -> bool:
        if not self.daemons.alive("slurmctld"):
            raise RuntimeError("slurmctld ended")
        idle = self.run("sinfo", "-h", "-N", "-t", "idle,mix,alloc", "-o", "%N", check=False).split()
        return len(set(idle)) == self.nodes

    def __exit__(self, *_: object) -> None:
        try:
            if self.daemons.alive("slurmctld"):
                self._cancel_all()
        finally:
            # Steps tell slurmctld of their end again and again, and a node waits for its steps.
            kill_marked(f"SLURM_CONF={self.configuration}", "SLURM_JOB_ID=")
            self.daemons.stop(*(name for name in self.daemons.started if name != "slurmctld"))
            self.daemons.stop_all()
            kill_marked(f"SLURM_CONF={self.configuration}")

    def _cancel_all(self) -> None:
        # By number: Slurm 26.05 refuses --user=nobody.
        jobs = self.run("squeue", "-h", "-o", "%A", check=False).split()
        # The waiting ones first: ending the others would start them.
        for options in (["--state=PENDING"], ["--signal=KILL", "--full"], []):
            self.run("scancel", *options, *jobs, check=False)

    def empty(self) -> None:
        """Cancel all jobs and wait until none is left."""
        self._cancel_all()
        wait_for("no jobs", lambda: not self.run("squeue", "-h").strip())

    def restart(self, *, kill: bool = False) -> None:
        """End slurmctld (``kill``: with SIGKILL) and start it again on its saved state."""
        if kill:
            self.daemons.started["slurmctld"].kill()
        self.daemons.stop("slurmctld")
        self._start_controller()
        wait_for("slurmctld after a restart", self._nodes_are_idle)

    def run(self, *command: object, check: bool = True, environment: dict[str, str] | None = None) -> str:
        """Return what a command prints; without ``check``, its errors too."""
        return run_command(command, self.environment | (environment or {}), self.folder / "out", check=check)

    def run_as(self, user: str, *command: object, check: bool = True) -> str:
        """Return what a command prints that ``user`` runs; only root can."""
        # What the commands read and where they are started belongs to root.
        for folder in (self.folder, self.folder / "out"):
            folder.chmod(0o755)
        return self.run("runuser", "-u", user, "--", *command, check=check)

    def replace_file(self, name: str, text: str) -> None:
        """Write a file beside slurm.conf, visibly newer than before: slurmctld looks at whole seconds."""
        file = self.folder / name
        newer = max(time.time(), file.stat().st_mtime if file.exists() else 0.0) + 2.0
        file.write_text(text)
        os.utime(file, (newer, newer))

    def submit(self, processors: int, minutes: int | str, *options: object, body: str = "sleep 0.2") -> int:
        """Submit a job and return its id."""
        size = ["-n", processors, "-t", minutes]
        out = self.run("sbatch", "--parsable", "-o", "/dev/null", *size, *options, "--wrap", body)
        return int(out.strip().split(";")[0])

    def hold_all(self) -> int:
        """Start a job that has every processor, so that what is submitted next has to wait; return its id."""
        job = self.submit(self.total, 600, body="sleep 3600")
        self.wait_state(job, "RUNNING")
        return job

    def show(self, job: int | str) -> dict[str, str]:
        """Return the fields of ``scontrol show job``."""
        words = self.run("scontrol", "--oneliner", "show", "job", job).split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def show_all(self) -> dict[int, dict[str, str]]:
        """Return the fields of all jobs by id."""
        lines = self.run("scontrol", "--oneliner", "show", "job").splitlines()
        result = (
            dict(word.split("=", 1) for word in line.split() if "=" in word) for line in lines if "JobId=" in line
        )
        return {int(job["JobId"]): job for job in result}

    def wait_state(self, job: int | str, *states: str, seconds: float = 60.0) -> None:
        """Wait until the job is in one of the states."""
        wait_for(f"job {job} {'/'.join(states)}", lambda: self.show(job)["JobState"] in states, seconds)

    def starts(self) -> list[int]:
        """Return the ids of all jobs started, in the order in which slurmctld allocated them.

        Start times have whole seconds and cannot order jobs of one round; the log can.
        """
        text = (self.log / "slurmctld.log").read_text(errors="replace")
        return [int(result) for result in re.findall(r"(?:sched: Allocate|_start_job: Started) JobId=(\d+)", text)]

    def wait_starts(self, jobs: Sequence[int], seconds: float = 120.0) -> list[int]:
        """Wait until all of ``jobs`` were started; return them in the order of their starts."""
        wanted = set(jobs)
        wait_for("all starts", lambda: wanted <= set(self.starts()), seconds, pause=0.2)
        return [job for job in self.starts() if job in wanted]
