"""The command ``policyfactory``: assembles the commands, turns errors into messages and exit codes."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from policyfactory import __version__
from policyfactory.core.errors import PolicyfactoryError

if TYPE_CHECKING:
    import typer

__all__ = ["build_app", "run"]


def build_app() -> typer.Typer:
    """Return the whole command."""
    import typer

    from policyfactory.cli import demo, evaluate, export, fit, generate, learn, policy, tune, workload

    app = typer.Typer(
        name="policyfactory",
        help="Learn the sort keys of HPC batch schedulers: workload -> trials -> fit -> policy -> evaluate -> export.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def main(
        version: bool = typer.Option(False, "--version", help="Print the version and exit."),
    ) -> None:
        """Learn the sort keys of HPC batch schedulers."""
        if version:
            # run() answers a lone --version; this is the one among other options.
            typer.echo(f"policyfactory {__version__}")
            raise typer.Exit

    app.add_typer(workload.app, name="workload")
    app.command("generate")(generate.generate)
    app.command("fit")(fit.fit)
    app.add_typer(policy.app, name="policy")
    app.command("evaluate")(evaluate.evaluate)
    app.command("tune")(tune.tune)
    app.command("learn")(learn.learn)
    app.command("export")(export.export)
    app.command("demo")(demo.demo)
    return app


def run() -> None:
    """Run the command line; errors become one message on stderr and exit code 1 or 2."""
    if sys.argv[1:2] == ["--version"]:
        # Answered before anything heavy is imported.
        print(f"policyfactory {__version__}")  # noqa: T201 (no console yet: start-up counts)
        return
    # Matrices are tall and narrow, and work is shared out by processes: BLAS threads would only wait for each other.
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    try:
        build_app()()
    except PolicyfactoryError as error:
        _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    except BrokenPipeError:
        # The reader (head, less) has gone: nothing is left to say, and no flush at exit may complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except MemoryError:
        _fail("not enough memory for this input; use a shorter log (policyfactory workload window)", 1)
    except OSError as error:
        place = error.filename or "system"
        _fail(f"{place}: {error.strerror or error}; check the path, its permissions and the disk", 1)


def _fail(message: str, code: int) -> None:
    print(f"error: {message}", file=sys.stderr)  # noqa: T201 (no console yet: start-up counts)
    sys.exit(code)
