"""Ways out to people: one file per kind of channel, and the registry of them."""
