"""Mutation testing: the tests must notice when one small thing in the source is wrong.

A mutant is the source of one module with one change (`mutation.operators` lists them). It is killed if a test of those
chosen for the module fails, errors or does not end; else it survives. Run from the project's top folder::

    make mutants                                   # all modules of mutation/targets.toml (or see below)
    make mutants ARGS='--budget 3600'              # a piece a night
    cd tests && python -m mutation                 # the same as make mutants
    cd tests && python -m mutation sample regression  # modules whose path ends so (with or without .py)
    cd tests && python -m mutation easy --again    # the unexplained survivors, once more
    cd tests && python -m mutation easy --workers 1           # processes side by side; default 2
    cd tests && python -m mutation --sample 200 --seed 7       # a random sample, with the interval of the share
    cd tests && python -m mutation --join --table ../docs/data/mutants.csv --page ../docs/trust.md

Each result is kept at once in ``.mutants/results.jsonl`` (or ``--output``). A run can be killed at any time: the next
one goes on with the mutants that have no result there. A statement that has changed has other mutants, so its old
results no longer count. Tests that have changed do not take results back: ``--again``, or a new file, runs the
mutants again.

A module is added in ``targets.toml``: its path and the tests for it, the quickest and sharpest first, as pytest's
node ids (files, or ``file.py::test``). Kernels run without the compiler (``NUMBA_DISABLE_JIT``), so the tests chosen
must be quick that way: on small cases, without subprocesses (those would see the sound source), without commands that
spread over processes. ``compiled = true`` compiles instead, each mutant with an empty cache: seconds for each.
``left_out`` gives functions that are not run there, by the reason.

No mutant is ever written to a file. One process imports the libraries; for each mutant it forks, the child puts the
changed module in memory in place of the file, or the changed code in the function that everybody holds, and runs the
tests. The limits are three times the processor time of the clean run plus two seconds, and 4 GB.

A survivor is either a test to be written or a mutant that computes the same. The latter is explained in
``survivors.toml`` with the module, the function, the statement before and after (as the report prints them) and the
reason. Explained survivors are listed apart and count as survivors all the same: the score is killed / all.
"""
