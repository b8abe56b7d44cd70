"""An OAR on loopback, from Debian's packages, with a PostgreSQL of its own.

What it takes (found by trying): a folder of links as OARDIR, into which a scheduler can be put; PostgreSQL not as
root; jobs of the type ``noop``, which need no node and end with their walltime; FINAUD_FREQUENCY 0, or the server
finds that the nodes do not answer; submissions as somebody else than root.
"""

from __future__ import annotations

import contextlib
import os
import signal
from getpass import getuser
from pathlib import Path
from typing import Self

import pytest

from schedulers.processes import Daemons, free_ports, kill_marked, require, run_command, wait_for

PROGRAMS = ("oarsub", "oarnodesetting", "psql", "perl")
_LIBRARY = Path("/usr/lib/oar")
_CONFIGURATION = Path("/usr/share/oar/oar-common/oar.conf")


class Server:
    """Almighty and its data base; a context manager that ends both.

    Parameters
    ----------
    folder : Path
        Empty, with a short name (`short_directory`).
    nodes, resources : int
        Nodes, and resources of each.
    """

    def __init__(self, folder: Path, *, nodes: int = 2, resources: int = 2) -> None:
        require(*PROGRAMS)
        result = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
        if not result:
            pytest.skip("PostgreSQL is not installed")
        self.folder, self.nodes, self.resources = folder, nodes, resources
        self.binaries = result[-1].parent
        self.log = folder / "log"
        self.port = free_ports(2)
        # PostgreSQL refuses to run as root.
        self.other = "nobody" if os.geteuid() == 0 else getuser()
        folder.chmod(0o755)
        for name in ("log", "run", "db", "sock", "oar", "oar/schedulers"):
            (folder / name).mkdir()
        for entry in _LIBRARY.iterdir():
            if entry.name != "schedulers":
                (folder / "oar" / entry.name).symlink_to(entry)
        for entry in (_LIBRARY / "schedulers").iterdir():
            (folder / "oar/schedulers" / entry.name).symlink_to(entry)
        self._write_configuration()
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("OAR")} | {
            "OARDIR": str(folder / "oar"),
            "OARCONFFILE": str(folder / "oar.conf"),
            "OARDO_USER": "root",
            "OARDO_UID": str(os.geteuid()),
            "OARUSER": getuser(),
            "LC_ALL": "C.UTF-8",
            "PGPASSWORD": "oar",
            "PATH": f"{folder}/oar:{os.environ['PATH']}:/usr/sbin:/sbin",
        }
        self.daemons = Daemons(self.log, self.environment)

    def _write_configuration(self) -> None:
        own = {
            "DB_PORT": self.port,
            "DB_BASE_PASSWD": "oar",
            "DB_BASE_PASSWD_RO": "oar_ro",
            "SERVER_PORT": self.port + 1,
            "LOG_FILE": self.log / "oar.log",
            "LOG_LEVEL": 3,
            "OAR_RUNTIME_DIRECTORY": self.folder / "run",
            "FINAUD_FREQUENCY": 0,
            "SCHEDULER_JOB_SECURITY_TIME": 1,
            "SCHEDULER_GANTT_HOLE_MINIMUM_TIME": 1,
            # As a site with fair-sharing has them.
            "SCHEDULER_FAIRSHARING_COEF_USER": 2,
            "SCHEDULER_FAIRSHARING_COEF_USER_ASK": 1,
        }
        lines = [line for line in _CONFIGURATION.read_text().splitlines() if line.split("=")[0] not in own]
        lines += [f'{key}="{value}"' for key, value in own.items()]
        (self.folder / "oar.conf").write_text("\n".join(lines) + "\n")

    def __enter__(self) -> Self:
        try:
            self._start_database()
            self._start_server()
            for node in range(1, self.nodes + 1):
                for _ in range(self.resources):
                    self.run("perl", _LIBRARY / "oarnodesetting", "-a", "-h", f"node{node}")
        except BaseException as error:
            self.__exit__()
            if isinstance(error, TimeoutError | RuntimeError):
                raise RuntimeError(f"OAR did not start: {error}\n{self.daemons.output()}") from error
            raise
        return self

    def _start_database(self) -> None:
        data, sockets = self.folder / "db", self.folder / "sock"
        become = ["runuser", "-u", self.other, "--"] if os.geteuid() == 0 else []
        if become:
            for path in (data, sockets):
                self.run("chown", self.other, path)
        self.run(
            *become,
            self.binaries / "initdb",
            "-D",
            data,
            "-A",
            "trust",
            "-U",
            "postgres",
            "-E",
            "UTF8",
            "--locale=C",
            "-N",
        )
        # Its own settings on the command line: nothing but 127.0.0.1, and no waiting for the disk.
        command = [self.binaries / "postgres", "-D", data, "-p", self.port, "-h", "127.0.0.1", "-k", sockets, "-F"]
        self.daemons.start("postgres", [*become, *command])
        wait_for("PostgreSQL", lambda: self._query("postgres", "postgres", "select 1", check=False) == "1\n", 60)
        for statement in (
            "create role oar login password 'oar'",
            "create role oar_ro login password 'oar_ro'",
            "create database oar owner oar",
        ):
            self._query("postgres", "postgres", statement)
        for name in ("pg_structure", "pg_default_admission_rules", "default_data"):
            self.run(*self._psql("oar", "oar"), "-f", _LIBRARY / f"database/{name}.sql")
        self.sql("grant select on all tables in schema public to oar_ro")

    def _start_server(self) -> None:
        self.daemons.start("almighty", ["perl", _LIBRARY / "Almighty"])
        log = self.log / "oar.log"
        wait_for("Almighty", lambda: log.exists() and "Current state [Qget]" in log.read_text(errors="replace"), 60)

    def _psql(self, user: str, base: str) -> list[str]:
        return [
            "psql",
            "-qAt",
            "-h",
            "127.0.0.1",
            "-p",
            str(self.port),
            "-U",
            user,
            "-v",
            "ON_ERROR_STOP=1",
            "-d",
            base,
        ]

    def _query(self, user: str, base: str, statement: str, *, check: bool = True) -> str:
        return self.run(*self._psql(user, base), "-c", statement, check=check)

    def sql(self, statement: str) -> list[list[str]]:
        """Return the rows of a query of OAR's data base."""
        return [line.split("|") for line in self._query("oar", "oar", statement).splitlines()]

    def __exit__(self, *_: object) -> None:
        # Almighty's children rename themselves, which covers their environment: its whole process group is ended.
        if (almighty := self.daemons.started.get("almighty")) is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(almighty.pid, signal.SIGKILL)
        kill_marked(f"OARDIR={self.folder}")
        self.daemons.stop_all()

    def run(self, *command: object, check: bool = True, user: str = "root") -> str:
        """Return what a command prints; without ``check``, its errors too."""
        return run_command(command, self.environment | {"OARDO_USER": user}, self.folder / "log", check=check)

    def submit(self, *requests: str, user: str = "nobody") -> int:
        """Submit a job with descriptions like ``nodes=1/resource_id=2,walltime=0:0:30``; return its id."""
        options = [part for request in requests for part in ("-l", request)]
        out = self.run("perl", _LIBRARY / "oarsub", "-t", "noop", *options, "true", user=user)
        return int(out.rsplit("OAR_JOB_ID=", 1)[1].split()[0])

    def hold_all(self) -> int:
        """Start a job that has all resources, so that what is submitted next has to wait; return its id."""
        job = self.submit(f"resource_id={self.nodes * self.resources},walltime=10:0:0")
        self.wait_state(job, "Running")
        return job

    def delete(self, *jobs: int) -> None:
        self.run("perl", _LIBRARY / "oardel", *jobs)

    def wait_state(self, job: int, state: str, seconds: float = 90.0) -> None:
        wait_for(
            f"job {job} {state}", lambda: self.sql(f"select state from jobs where job_id={job}") == [[state]], seconds
        )

    def log_lines(self, mark: str) -> list[str]:
        return [line for line in (self.log / "oar.log").read_text(errors="replace").splitlines() if mark in line]
