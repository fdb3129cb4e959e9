"""0cron: calls HTTP endpoints on schedule, once per slot, with proof."""

__version__ = "0.1.0"
