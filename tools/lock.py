"""Writes requirements/*.lock: every package that `make` installs, with the digests of all its files.

`pip install --require-hashes` takes nothing that is not written there, so that a file which is replaced in
the registry, or on its way, is refused. One lock serves Python 3.10 and every newer one on all systems.

    pip install uv
    python tools/lock.py              # after a change of pyproject.toml or requirements/dev.txt
    python tools/lock.py --upgrade    # the newest of everything
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ROOT / "requirements"


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lowest = project["project"]["requires-python"].removeprefix(">=")
    with tempfile.TemporaryDirectory() as folder:
        build = Path(folder, "build.in")
        build.write_text("\n".join(project["build-system"]["requires"]), encoding="utf-8")
        command = ["uv", "pip", "compile", "--quiet", "--universal", "--generate-hashes", "--no-annotate"]
        command += ["--python-version", lowest, "--custom-compile-command", "python tools/lock.py"]
        command += [str(ROOT / "pyproject.toml"), str(build)]
        # What the tests use is a superset of what a run uses; both take the same versions.
        dev, run = LOCKS / "dev.lock", LOCKS / "run.lock"
        tests = [str(LOCKS / "dev.txt"), "--output-file", str(dev)]
        subprocess.run([*command, *sys.argv[1:], *tests], check=True)
        subprocess.run([*command, "--constraint", str(dev), "--output-file", str(run)], check=True)


if __name__ == "__main__":
    main()
