"""Temporary entry."""
from __future__ import annotations
import asyncio, sys, uvloop
from zerocron.app import serve
from zerocron.settings import load
def main() -> None:
    uvloop.run(serve(load(), demo="--demo" in sys.argv, announce=print))
