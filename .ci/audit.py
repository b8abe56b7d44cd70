"""Look up published vulnerabilities of what is installed in an environment: .ci/audit.py PYTHON [PIP_AUDIT].

pip-audit asks OSV and PyPI. Fails if one of them knows a vulnerability. Where neither can be asked (a mirror has the
packages but not the advisories), it says what was not looked up, and passes.
"""

from __future__ import annotations

import json
import subprocess
import sys

SERVICES = ("osv", "pypi")
# Of the environment itself, which no program here runs; and what is built here, whose advisories are made here.
LEFT_OUT = {"pip", "setuptools", "wheel", "policyfactory"}


def ask(service: str, tool: str, folder: str) -> list[dict]:
    """Return what a service says of each package in a folder; nothing if it cannot be asked."""
    command = [tool, "--vulnerability-service", service, "--path", folder, "--skip-editable", "--format", "json"]
    done = subprocess.run([*command, "--progress-spinner", "off"], capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout)["dependencies"]
    except ValueError:
        last = (done.stderr.strip() or "no answer").splitlines()[-1]
        print(f"{service} could not be asked: {last[:200]}")
        return []


def main(python: str, tool: str = ".venv-release/bin/pip-audit") -> int:
    """Return 1 if there is a published vulnerability, else 0."""
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    folder = subprocess.run([python, "-c", where], capture_output=True, text=True, check=True).stdout.strip()
    names: set[str] = set()
    looked_up: set[str] = set()
    found: dict[tuple[str, str], list[str]] = {}
    for service in SERVICES:
        for package in ask(service, tool, folder):
            name = package["name"]
            if name in LEFT_OUT or "editable" in package.get("skip_reason", ""):
                continue
            names.add(name)
            if "vulns" in package:
                looked_up.add(name)
            for one in package.get("vulns", []):
                found[f"{name} {package['version']}", one["id"]] = one["fix_versions"]
    for (package, name), fixed in found.items():
        print(f"VULNERABLE: {package}: {name}, fixed in {', '.join(fixed) or 'no version yet'}")
    print(f"{len(looked_up)} of {len(names)} packages looked up, {len(found)} published vulnerabilities")
    unknown = names - looked_up
    if unknown or not names:
        which = f"{len(unknown)} of {len(names)} packages" if names else "any package"
        listed = f": {', '.join(sorted(unknown))}" if names else ""
        print(f"NOT CHECKED: vulnerabilities of {which}, no service answered{listed}")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
