"""The command line: `0cron`, also `zerocron`."""

from zerocron.cli.main import main

__all__ = ["main"]
