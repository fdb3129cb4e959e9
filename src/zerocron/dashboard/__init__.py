"""The pages that people see: rendered by the server, a client of the API like any other (decision 0015).

Imports `core` and the clock, and nothing else of the house: what a page shows is what the API answers to whoever looks.
"""
