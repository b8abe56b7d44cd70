"""The command ``policyfactory``: assembles the commands, turns errors into messages and exit codes."""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import io
import os
import sys
import warnings
from typing import TYPE_CHECKING, NoReturn

from policyfactory.core import inputs, process
from policyfactory.core.errors import PolicyfactoryError
from policyfactory.core.files import no_empty_folders
from policyfactory.core.process import ignore_folder
from policyfactory.core.version import __version__

if TYPE_CHECKING:
    import click
    import typer


# Heading in the help -> its commands, in their order -> module and function, or ``app``, a group of commands.
_COMMANDS = {
    "The main job": {
        "demo": "learn.demo",
        "workload": "workload.app",
        "learn": "learn.learn",
        "export": "export.export",
    },
    "Research": {
        "generate": "generate.generate",
        "fit": "fit.fit",
        "evaluate": "evaluate.evaluate",
        "train": "train.train",
        "distill": "train.distill",
        "judge": "train.judge",
        "tune": "evaluate.tune",
    },
    "The cluster": {
        "site": "site.app",
        "forecast": "forecast.forecast",
        "predict": "predict.predict",
        "history": "predict.app",
        "shadow": "review.shadow",
        "review": "review.review",
    },
    "Policies": {"policy": "policy.app"},
}
_ORDER = [name for commands in _COMMANDS.values() for name in commands]


def build_app(name: str = "") -> typer.Typer:
    """Return the whole command, or as much of it as one of its commands needs.

    Parameters
    ----------
    name : str
        The command; empty for all of them.
    """
    import typer

    from policyfactory.cli.help import Commands, show_all

    app = typer.Typer(
        name="policyfactory",
        cls=Commands,
        help="Learn the sort keys of HPC batch schedulers: workload -> trials -> fit -> policy -> evaluate -> export.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def main(
        version: bool = typer.Option(False, "--version", help="Print the version and exit."),
        help_all: bool = typer.Option(  # noqa: ARG001 (all commands get it, and it ends them)
            False, "--help-all", is_eager=True, expose_value=False, callback=show_all, help="Show all options and exit."
        ),
    ) -> None:
        """Learn the sort keys of HPC batch schedulers."""
        if version:
            # run() answers a lone --version; this is the one among other options.
            typer.echo(f"policyfactory {__version__}")
            raise typer.Exit

    for heading, commands in _COMMANDS.items():
        for command, source in commands.items():
            if name not in {command, ""}:
                continue
            module, attribute = source.split(".")
            found = getattr(importlib.import_module(f"policyfactory.cli.{module}"), attribute)
            if attribute == "app":
                app.add_typer(found, name=command, rich_help_panel=heading)
            else:
                app.command(command, rich_help_panel=heading)(found)
    return app


@functools.cache
def build_command(name: str = "") -> click.Command:
    """Return the whole command, or the part of it for one command, as it is run: with both levels of its help."""
    import typer.main

    from policyfactory.cli.help import arrange, note_inputs

    command: click.Group = note_inputs(arrange(typer.main.get_command(build_app(name))))
    # Typer puts groups behind all others.
    command.commands = dict(sorted(command.commands.items(), key=lambda entry: _ORDER.index(entry[0])))
    return command


def run() -> None:
    """Run the command line; errors become one message on stderr and exit code 1 or 2, signals 128 and their number."""
    if sys.argv[1:2] == ["--version"]:
        # Answered before anything heavy is imported.
        print(f"policyfactory {__version__}")  # noqa: T201 (no console yet: start-up counts)
        return
    ignore_folder()
    # What a command makes mostly lives to its end: looking for garbage after every 700 objects takes a tenth of a run.
    gc.set_threshold(20_000)
    # And looking through all that is loaded once more, before the process ends, took a fifth of a short evaluate. Given
    # up for it: finalizers of objects in cycles that are left then do not run. Registered once, however often run() is.
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)
    for stream in (sys.stdout, sys.stderr):
        # Names of files may be no UTF-8, and a terminal may not have all characters: neither ends a run.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    # Of libraries, and of parts that have no terminal: without the line of code that a warning comes from.
    warnings.showwarning = lambda message, *_: _say("warning", str(message))
    # Matrices are tall and narrow, and work is shared out by processes: BLAS threads would only wait for each other.
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    try:
        try:
            process.install()
            from policyfactory.cli.options import noted

            with inputs.command(), noted(), no_empty_folders():
                first = "".join(sys.argv[1:2])
                build_command(first if first in _ORDER else "")()
        except Exception:
            # Some code makes another error of what is raised inside it: Python 3.11 in a class, pydantic in a model.
            if (stop := process.received()) is None:
                raise
            raise stop from None
        finally:
            # What follows is short, and must not be cut short.
            process.ignore()
    except PolicyfactoryError as error:
        _fail(str(error), error.exit_code)
    except KeyboardInterrupt as stop:
        _stop(stop)
    except SystemExit as end:
        # Typer makes exit codes of interrupts.
        if end.code and (received := process.received()) is not None:
            _stop(received)
        raise
    except BrokenPipeError:
        # The reader (head, less) has gone: nothing is left to say, and no flush at exit may complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except MemoryError:
        _fail("not enough memory for this input; use a shorter log (policyfactory workload window)", 1)
    except OSError as error:
        if _of_printing(error):
            _fail(
                f"standard output: {error.strerror or error}; make room where it is written to, or send it elsewhere", 1
            )
        path = error.filename or "system"
        _fail(f"{path}: {error.strerror or error}; check the path, its permissions and the disk", 1)


def _stop(stop: KeyboardInterrupt) -> NoReturn:
    """Say by what the run was stopped, and what the command noted to it about what is kept."""
    notes = getattr(stop, "__notes__", ["no file is half written; run the same command again"])
    _fail(f"{process.stopped(stop)}: {'; '.join(notes)}", getattr(stop, "exit_code", 130))


def _of_printing(error: OSError) -> bool:
    """Tell whether an error comes from the libraries that print, which do not say where it was written to."""
    trace, name = error.__traceback__, ""
    while trace is not None:
        name = trace.tb_frame.f_globals.get("__name__", "")
        trace = trace.tb_next
    return error.filename is None and name.partition(".")[0] in {"rich", "click", "typer"}


def _fail(message: str, code: int) -> NoReturn:
    _say("error", message)
    process.end(code)


def _say(kind: str, message: str) -> None:
    # A file's name can hold what would steer the terminal.
    shown = "".join(c if c.isprintable() or c == "\n" else f"<U+{ord(c):04X}>" for c in message)
    print(f"{kind}: {shown}", file=sys.stderr)  # noqa: T201 (no console yet: start-up counts)
