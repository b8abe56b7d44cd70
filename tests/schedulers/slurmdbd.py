"""Accounting for the test cluster: a MariaDB and a slurmdbd on loopback, in a directory of their own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from getpass import getuser
from pathlib import Path
from typing import Self

from schedulers.processes import Daemons, free_ports, kill_marked, require, wait_for

PROGRAMS = ("slurmdbd", "mariadbd", "mariadb-install-db", "mariadb", "sacctmgr", "sacct")


class Accounting:
    """MariaDB and slurmdbd; a context manager. ``lines`` go into the cluster's slurm.conf.

    Start it before the cluster and end it after; the cluster is called ``test``, as `Cluster` has it.

    Parameters
    ----------
    folder : Path
        Empty, with a short name (`short_directory`).
    """

    def __init__(self, folder: Path) -> None:
        require(*PROGRAMS)
        self.folder = folder
        self.port = free_ports(2)
        for name in ("db", "log", "bin"):
            (folder / name).mkdir()
        host = socket.gethostname().split(".")[0]
        settings = folder / "slurmdbd.conf"
        settings.write_text(
            f"AuthType=auth/none\nDbdHost={host}\nDbdAddr=127.0.0.1\nDbdPort={self.port + 1}\nSlurmUser={getuser()}\n"
            f"LogFile={folder}/log/slurmdbd.log\nPidFile={folder}/slurmdbd.pid\nDebugLevel=info\n"
            f"StorageType=accounting_storage/mysql\nStorageHost=127.0.0.1\nStoragePort={self.port}\n"
            "StorageUser=slurm\nStoragePass=slurm\nStorageLoc=slurm_acct\nCommitDelay=1\n"
        )
        settings.chmod(0o600)
        # slurmdbd and sacctmgr read a slurm.conf too, before that of the cluster is there.
        self.lines = (
            "AccountingStorageType=accounting_storage/slurmdbd",
            "AccountingStorageHost=127.0.0.1",
            f"AccountingStoragePort={self.port + 1}",
        )
        (folder / "slurm.conf").write_text(
            f"ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nAuthType=auth/none\nCredType=cred/none\n"
            f"SlurmUser={getuser()}\n" + "\n".join(self.lines) + "\n"
            f"NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1\nPartitionName=batch Nodes=n1 Default=YES\n"
        )
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
        self.environment |= {
            "SLURM_CONF": str(folder / "slurm.conf"),
            "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin",
        }
        self.daemons = Daemons(folder / "log", self.environment)

    def __enter__(self) -> Self:
        try:
            self._start_database()
            program = shutil.which("slurmdbd", path="/usr/sbin:/usr/bin")
            (self.folder / "bin/slurmdbd").symlink_to(program or "slurmdbd")
            self.daemons.start("slurmdbd", [self.folder / "bin/slurmdbd", "-D"])
            wait_for("slurmdbd", lambda: self._runs("sacctmgr", "-n", "show", "cluster"), 60)
            self._run("sacctmgr", "-i", "add", "cluster", "test")
        except BaseException as error:
            self.__exit__()
            if isinstance(error, TimeoutError | RuntimeError):
                raise RuntimeError(f"slurmdbd did not start: {error}\n{self.daemons.output()}") from error
            raise
        return self

    def _start_database(self) -> None:
        data, names = self.folder / "db", f"--user={getuser()}"
        self._run(
            "mariadb-install-db", "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db",
            f"--datadir={data}", names,
        )  # fmt: skip
        self.daemons.start(
            "mariadbd",
            [
                shutil.which("mariadbd", path="/usr/sbin:/usr/bin") or "mariadbd", "--no-defaults", f"--datadir={data}",
                names, "--bind-address=127.0.0.1", f"--port={self.port}", f"--socket={data}/sock",
                f"--pid-file={data}/pid",
                "--innodb-buffer-pool-size=64M", "--innodb-lock-wait-timeout=900", "--innodb-flush-log-at-trx-commit=0",
                "--skip-networking=0",
            ],
        )  # fmt: skip
        client = ("mariadb", "--no-defaults", "-S", f"{data}/sock", "-u", "root", "-e")
        wait_for("mariadbd", lambda: self._runs(*client, "select 1"), 60)
        rights = "".join(
            f"create user 'slurm'@'{host}' identified by 'slurm'; grant all on slurm_acct.* to 'slurm'@'{host}';"
            for host in ("127.0.0.1", "localhost")
        )
        self._run(*client, f"create database slurm_acct; {rights}")

    def _call(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=600, check=False, cwd=self.folder
        )

    def _runs(self, *command: str) -> bool:
        return self._call(*command).returncode == 0

    def _run(self, *command: str) -> None:
        done = self._call(*command)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")

    def __exit__(self, *_: object) -> None:
        self.daemons.stop_all()
        kill_marked(f"SLURM_CONF={self.folder / 'slurm.conf'}")
