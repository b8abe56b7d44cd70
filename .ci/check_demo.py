"""The demo left what it says it makes, and each file can be used."""

import json
import subprocess
import sys
from pathlib import Path

folder = Path(sys.argv[1])
made = ("training.swf", "test.swf", "scores.csv", "scores.manifest.json", "forms.md", "polynomials.md", "winner.lua")
for name in made:
    assert (folder / name).stat().st_size > 0, name
for name in ("forms.json", "polynomials-lin.json"):
    assert json.loads((folder / name).read_text(encoding="utf-8"))["kind"] == "policyfactory-model", name
pictures = sorted([*folder.rglob("*.png"), *folder.rglob("*.svg")])
assert len(pictures) >= 10, pictures
page = (folder / "evaluation" / "report.html").read_text(encoding="utf-8")
assert page.startswith("<!"), page[:200]
assert "forms-f1" in page
evaluation = json.loads((folder / "evaluation" / "evaluation.json").read_text(encoding="utf-8"))
# What the demo is for: a formula that was learned and chosen on other workloads beats FCFS on one of its own.
found = evaluation["experiments"]["evaluation"]
chosen = next(path.stem for path in (folder / "thresholds").iterdir() if path.stem.startswith("forms-"))
assert found["verdict"]["light"] == "better", found["verdict"]
assert found["verdict"]["sentences"][0].startswith(f"{chosen} is better than "), found["verdict"]
code = "from winner import score; print(score(p=3600.0, q=64.0, r=10.0, w=0.0, m=256.0))"
subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)
print(f"{len(pictures)} pictures; chosen: {chosen}")
