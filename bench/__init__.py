"""Benchmarks: `make bench` runs them all and prints JSON lines. Each has a bare aiohttp loop beside it in the same run,
because machines are shared and noisy: compare the ratios, not the milliseconds."""
