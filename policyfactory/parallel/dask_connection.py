"""The connection to a Dask scheduler, given by its address or started in this process.

Addresses are checked before Dask is imported: that takes a second.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import logging
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from policyfactory.core.errors import InputError, UsageError, WorkersError
from policyfactory.core.inputs import read_bytes, who_else

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["CLIENT", "check_installed", "check_reachable", "connect", "connect_local", "quiet", "scheduler_address"]

CLIENT = "policyfactory"  # the name of our clients on a scheduler

_LIMIT = 1 << 20
_SIZE = 8
_SHOWN = 200  # characters of an address that is none
_WANTED = "give tcp://HOST:PORT, tls://HOST:PORT, or the name of a scheduler file (FILE.json)"


def check_installed() -> None:
    """Check that Dask is installed, without importing it.

    Raises
    ------
    UsageError
        If it is not.
    """
    if importlib.util.find_spec("distributed") is None:
        raise UsageError("backend dask needs Dask, which is not installed: pip install 'policyfactory[dask]'")


def scheduler_address(text: str) -> str:
    """Return the address of a scheduler: as it is given, or from its scheduler file.

    Raises
    ------
    UsageError
        If it is no address.
    InputError
        If the scheduler file cannot be read, has no address, or could be somebody else's.
    """
    if not text.endswith(".json"):
        return _checked(text if "://" in text else f"tcp://{text}", f"--scheduler {text}")
    path = Path(text)
    data = read_bytes(path, limit=_LIMIT)
    # Workers and command run what comes from there.
    if wrong := who_else(path):
        raise InputError(
            f"{text}: says where the work is sent, and somebody else can change it: {wrong}; keep it in a folder that "
            "only you can write to (chmod go-w), or give the scheduler's address"
        )
    try:
        address = json.loads(data)["address"]
        if not isinstance(address, str):
            raise TypeError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(
            f"{text}: is not a scheduler file of Dask (JSON with an address); dask scheduler --scheduler-file makes one"
        ) from None
    return _checked(address, f"{text}: address {address[:_SHOWN]}")


def _checked(address: str, place: str) -> str:
    try:
        parts = urlsplit(address)
        good = parts.scheme in {"tcp", "tls"} and parts.hostname and parts.port and not parts.path.strip("/")
    except ValueError:
        good = False
    if not good or not address.isprintable():
        raise UsageError(f"{ascii(place)[1:-1]} is not an address of a Dask scheduler; {_WANTED}")
    return address.rstrip("/")


def check_reachable(address: str, seconds: float) -> None:
    """Check that something listens at an address, and speaks first as a Dask scheduler does.

    Parameters
    ----------
    address : str
        As `scheduler_address` returns it.
    seconds : float
        How long it may take to answer.

    Raises
    ------
    WorkersError
        If nothing listens there, or something else.
    """
    parts = urlsplit(address)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=seconds) as connection:
            # With TLS it is the caller who speaks first.
            first = connection.recv(_SIZE, socket.MSG_WAITALL) if parts.scheme == "tcp" else None
    except socket.gaierror as error:
        raise WorkersError(
            f"{address}: there is no host {parts.hostname} ({error.strerror}); check the name, or give its number"
        ) from None
    except TimeoutError:
        raise WorkersError(
            f"{address}: no Dask scheduler answers within {seconds:g} seconds; check the address and the port (8786 is "
            "the scheduler's, 8787 its web page), and that no firewall is between"
        ) from None
    except ConnectionRefusedError:
        raise WorkersError(
            f"{address}: nothing listens at this port; start a scheduler (dask scheduler), or check the port"
        ) from None
    except (OSError, UnicodeError) as error:
        raise WorkersError(f"{address}: cannot be reached ({error}); check the address") from None
    # Dask's message begins with its size; text would be an absurd one.
    if first is not None and (len(first) < _SIZE or int.from_bytes(first, "little") > _LIMIT):
        raise WorkersError(_not_a_scheduler(address))


def _not_a_scheduler(address: str) -> str:
    """Return the message for what listens at an address and is no Dask scheduler."""
    return (
        f"{address}: something answers there, but not as a Dask scheduler; check the port (8786 is the scheduler's, "
        "8787 its web page), whether it is tcp:// or tls://, and that Dask's versions are the same"
    )


def connect(address: str, seconds: float) -> Client:
    """Return the connection to a scheduler.

    Raises
    ------
    WorkersError
        If what is at the address is no scheduler.
    """
    from distributed import Client

    answers: SimpleQueue[Client | Exception] = SimpleQueue()

    def try_it() -> None:
        try:
            answers.put(Client(address, timeout=seconds, set_as_default=False, name=CLIENT))
        except Exception as error:  # noqa: BLE001 (what is no scheduler answers in many ways)
            answers.put(error)

    # Dask's own time limit does not hold while it waits for the first message.
    threading.Thread(target=try_it, name="dask-connect", daemon=True).start()
    try:
        answer = answers.get(timeout=2 * seconds)
    except Empty:
        raise WorkersError(_not_a_scheduler(address)) from None
    if isinstance(answer, Exception):
        raise WorkersError(f"{_not_a_scheduler(address)} ({type(answer).__name__})")
    return answer


def connect_local(threads: int, folder: str) -> tuple[Client, Any]:
    """Start a scheduler and one worker of so many threads in this process; return the connection and the cluster.

    They talk in memory. Dask starts a web server for each in any case; theirs have no pages, and listen to this machine
    alone. And Dask imports first from where it keeps their data: ``folder`` must be nobody else's.
    """
    import dask.config
    from distributed import Client, Scheduler, SpecCluster, Worker

    both = {"protocol": "inproc://", "dashboard": False, "dashboard_address": "127.0.0.1:0"}
    empty: dict[str, Any] = {f"distributed.{who}.http.routes": [] for who in ("scheduler", "worker")}
    with dask.config.set({**empty, "temporary-directory": folder}):
        cluster = SpecCluster(
            scheduler={"cls": Scheduler, "options": both},
            workers={"threads": {"cls": Worker, "options": {**both, "nthreads": threads, "memory_limit": 0}}},
            silence_logs=60,
        )
    return Client(cluster, set_as_default=False, name=CLIENT), cluster


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep Dask from writing its log to the terminal: what matters in it is reported in our words."""
    import distributed  # noqa: F401 (makes its loggers)

    names = ("distributed", "tornado", "asyncio")
    loggers = [logging.getLogger(name) for name in logging.root.manager.loggerDict if name.split(".")[0] in names]
    before = [(logger, logger.disabled) for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in before:
            logger.disabled = disabled
