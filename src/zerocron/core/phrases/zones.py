"""Time zones by the names people use: cities, IANA names, and the abbreviations that are refused.

Owns the cities (language tables add their own spellings: Londres, Moscú). It must never accept an abbreviation that two
zones share or that forgets summer time: EST is refused and America/New_York proposed.
"""

from __future__ import annotations

from typing import Final

from zerocron.core.errors import Invalid
from zerocron.core.schedule import check_timezone

CITIES: Final[dict[str, str]] = {
    "UTC": "utc | gmt | z",
    "Africa/Cairo": "cairo",
    "Africa/Casablanca": "casablanca",
    "Africa/Johannesburg": "johannesburg",
    "Africa/Lagos": "lagos",
    "Africa/Nairobi": "nairobi",
    "America/Argentina/Buenos_Aires": "buenos aires",
    "America/Bogota": "bogota",
    "America/Caracas": "caracas",
    "America/Chicago": "chicago",
    "America/Denver": "denver",
    "America/Lima": "lima",
    "America/Los_Angeles": "los angeles | san francisco | seattle",
    "America/Mexico_City": "mexico city",
    "America/Montevideo": "montevideo",
    "America/New_York": "new york | boston | miami",
    "America/Santiago": "santiago",
    "America/Sao_Paulo": "sao paulo",
    "America/Toronto": "toronto | montreal",
    "America/Vancouver": "vancouver",
    "Asia/Dubai": "dubai",
    "Asia/Hong_Kong": "hong kong",
    "Asia/Jakarta": "jakarta",
    "Asia/Jerusalem": "jerusalem | tel aviv",
    "Asia/Kolkata": "kolkata | mumbai | delhi | bangalore",
    "Asia/Manila": "manila",
    "Asia/Seoul": "seoul",
    "Asia/Shanghai": "shanghai | beijing",
    "Asia/Singapore": "singapore",
    "Asia/Taipei": "taipei",
    "Asia/Tokyo": "tokyo",
    "Atlantic/Reykjavik": "reykjavik",
    "Australia/Melbourne": "melbourne",
    "Australia/Perth": "perth",
    "Australia/Sydney": "sydney",
    "Europe/Amsterdam": "amsterdam",
    "Europe/Athens": "athens",
    "Europe/Berlin": "berlin",
    "Europe/Brussels": "brussels",
    "Europe/Copenhagen": "copenhagen",
    "Europe/Dublin": "dublin",
    "Europe/Helsinki": "helsinki",
    "Europe/Istanbul": "istanbul",
    "Europe/Kyiv": "kyiv",
    "Europe/Lisbon": "lisbon",
    "Europe/London": "london",
    "Europe/Madrid": "madrid | barcelona",
    "Europe/Moscow": "moscow",
    "Europe/Oslo": "oslo",
    "Europe/Paris": "paris",
    "Europe/Prague": "prague",
    "Europe/Rome": "rome",
    "Europe/Stockholm": "stockholm",
    "Europe/Vienna": "vienna",
    "Europe/Warsaw": "warsaw",
    "Europe/Zurich": "zurich | geneva",
    "Pacific/Auckland": "auckland",
    "Pacific/Honolulu": "honolulu",
}

# Refused, with the zone that is probably meant.
ABBREVIATIONS: Final[dict[str, str]] = {
    "America/New_York": "est | edt",
    "America/Chicago": "cst | cdt",
    "America/Denver": "mst | mdt",
    "America/Los_Angeles": "pst | pdt",
    "Europe/London": "bst",
    "Europe/Paris": "cet | cest",
    "Europe/Athens": "eet | eest",
    "Asia/Kolkata": "ist",
    "Asia/Tokyo": "jst",
    "Australia/Sydney": "aest | aedt",
}


def iana(name: str) -> str | None:
    """The IANA name in its own spelling (`asia/tokyo` is Asia/Tokyo), or None when there is no such zone."""
    try:
        return check_timezone(name)
    except Invalid as refusal:
        return next((zone for zone in refusal.suggestions if zone.lower() == name.lower()), None)
