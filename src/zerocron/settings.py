"""Every knob: name, type, unit, default, and why one would turn it.

Owns the reading of the environment, which nobody else may read. A variable `ZEROCRON_X` may be given as a file by
`ZEROCRON_X_FILE`, whose content is used. Settings are read at the top and handed down as arguments.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from zerocron.core.errors import FieldError, Invalid
from zerocron.core.mail import FROM_SETTING, URL_SETTING, Mail, read_mail
from zerocron.core.proxies import TrustedProxies, parse_proxies
from zerocron.core.requests import check_url
from zerocron.core.single_sign_on import check_issuer, parse_domains
from zerocron.core.team_limits import Limits

PREFIX = "ZEROCRON_"


def _knob(
    default: Any, why: str, *, low: float | None = None, high: float | None = None, is_secret: bool = False
) -> Any:
    """`is_secret`: it is, or may hold, a password or key, and is shown by nothing that prints settings."""
    return field(default=default, metadata={"why": why, "low": low, "high": high}, repr=not is_secret)


@dataclass(frozen=True, slots=True)
class Settings:
    """What a server is told by its operator."""

    data_dir: Path = _knob(
        Path("data"), "Where the SQLite file, the local API key and the lock live. Keep it on a local disk."
    )
    database_url: str = _knob(
        "",
        "The ledger: empty for a SQLite file in the data directory, or postgresql://user:password@host/database. "
        "Better given as a file, by ZEROCRON_DATABASE_URL_FILE: it holds a password.",
        is_secret=True,
    )
    database_connections_max: int = _knob(10, "Connections one node opens to PostgreSQL, at most.", low=3, high=200)
    redis_url: str = _knob(
        "",
        "The timetable: empty to keep it in this process, or redis://, rediss://, unix://, "
        "redis+sentinel://host,host/name or redis+cluster://host. Several engine nodes need it. With a password in it "
        "better given as a file, by ZEROCRON_REDIS_URL_FILE.",
        is_secret=True,
    )
    redis_prefix: str = _knob("zerocron", "What every key in Redis begins with, so that others may use the same one.")
    redis_shards: int = _knob(
        1,
        "Over how many keys the timetable is spread; more only for Redis Cluster. All nodes need the same.",
        low=1,
        high=64,
    )
    role: str = _knob(
        "all", "all, api or engine: what this node does. api and engine need PostgreSQL; api needs Redis, too."
    )
    host: str = _knob("127.0.0.1", "The address the API listens on. 0.0.0.0 opens it to the network.")
    port: int = _knob(8000, "The port the API listens on; 0 takes a free one.", low=0, high=65_535)
    secret_key: str = _knob(
        "",
        "Master keys that seal the secrets of jobs, from `0cron secrets new-key`: 32 bytes in base64 or hex, several "
        "separated by commas, the newest first. Empty with SQLite: the file secret-key in the data directory, made at "
        "the first start. Every node of a cluster needs the same. Better given by ZEROCRON_SECRET_KEY_FILE.",
        is_secret=True,
    )
    outbound_allow: str = _knob(
        "",
        "Private or loopback networks that jobs may call: CIDR[:port[-port]], comma separated, "
        "such as 127.0.0.0/8:8000-9000,10.0.0.0/8. Everything else that is not public is refused.",
    )
    allow_insecure_tls: bool = _knob(
        False,
        "Let jobs switch the verification of TLS certificates off (verify_tls), such as for self-signed ones on a LAN. "
        "Without it certificates are verified, whatever a job says.",
    )
    base_url: str = _knob(
        "",
        "The URL at which others reach this server, such as https://cron.example.com. Ping URLs begin with it; empty: "
        "with whatever the request that asks for them was sent to. Of what is below it jobs may call pings only: one "
        "that calls its own scheduler can go round for ever. With a path, such as https://example.com/cron, the rest "
        "of that host is like any other.",
    )
    trusted_proxies: str = _knob(
        "",
        "The proxies before this server, as networks or addresses: 10.0.0.5,fd00::/64. What they say of a client's "
        "address (X-Forwarded-For) and of TLS (X-Forwarded-Proto) is believed; of others it is not, so that nobody can "
        "pass for somebody else. Let them overwrite what a client sent of X-Forwarded-Proto.",
    )
    trusted_header: str = _knob(
        "",
        "The header by which a trusted proxy says who has signed in there, such as Remote-Email; it holds an email "
        "address. Needs trusted_proxies. Of anybody else it is taken away. See docs/single-sign-on.md.",
    )
    oidc_issuer: str = _knob(
        "",
        "An issuer of OpenID Connect at which people may sign in, such as https://accounts.google.com, written as it "
        "calls itself. Needs oidc_client_id and base_url; register BASE_URL/auth/oidc/callback there. One on a private "
        "address needs outbound_allow. See docs/single-sign-on.md.",
    )
    oidc_client_id: str = _knob("", "What the issuer calls this server.")
    oidc_client_secret: str = _knob(
        "",
        "The secret that goes with it; empty for a public client. Better given by ZEROCRON_OIDC_CLIENT_SECRET_FILE.",
        is_secret=True,
    )
    oidc_name: str = _knob("", "What the button on the sign-in page calls the issuer; empty: its host.")
    sign_up_domains: str = _knob(
        "",
        "Domains of email addresses, comma separated, whose owners may come in without an invitation, through the "
        "issuer or the trusted proxy: they join the first team as viewers. Empty: by invitation only.",
    )
    in_flight_max: int = _knob(
        1_000, "Requests in flight at once; more wait. Each may hold up to 2 MB while it runs.", low=1, high=10_000
    )
    team_in_flight_max: int = _knob(
        0,
        "Requests in flight of one team at once; 0: nine tenths of in_flight_max, so that others always find room.",
        low=0,
        high=10_000,
    )
    host_in_flight_max: int = _knob(
        0, "Requests in flight to one host and port at once; 0: as many as there are.", low=0, high=10_000
    )
    retry_percent_max: int = _knob(
        20,
        "Retries of a team beyond a burst of 100: so many to a hundred of its runs, and one a second at least. More "
        "are not dropped but made later.",
        low=1,
        high=1_000,
    )
    drain_seconds: float = _knob(
        30.0, "How long SIGTERM waits for running requests before it gives them up.", low=0, high=3_600
    )
    history_days: int = _knob(90, "Runs older than this are removed, in days.", low=1, high=36_500)
    history_runs_per_job: int = _knob(
        100_000, "A job keeps at most this many runs, the newest.", low=10, high=100_000_000
    )
    team_jobs_max: int = _knob(
        0,
        "Jobs that a team may have; 0: as many as it likes. `0cron teams limits` gives a team a limit of its own.",
        low=0,
        high=100_000_000,
    )
    team_runs_per_minute_max: int = _knob(
        0,
        "Runs that a team may start in a minute, by schedule or trigger; 0: as many as come due. Slots beyond it are "
        "recorded as skipped (team_limit), triggers answered 429. Retries do not count.",
        low=0,
        high=100_000_000,
    )
    team_history_bytes_max: int = _knob(
        0,
        "Bytes of requests and answers that are kept of a team, counted once an hour; beyond it the oldest runs go. "
        "0: as many as history_days and history_runs_per_job keep.",
        low=0,
        high=10**15,
    )
    pings_per_second: int = _knob(
        20, "Pings that one monitor may send a second, on average; more are answered 429.", low=1, high=1_000_000
    )
    mail_url: str = _knob(
        "",
        "The mail server for channels of kind email: smtp://user:password@mail.example.com:587 (STARTTLS) or smtps:// "
        "(TLS from the first byte), with signs in the password percent-encoded. Options, behind a question mark: "
        "security (starttls, tls, none), allow (networks that are not public to which its name may lead), unsubscribe "
        "(what List-Unsubscribe names). Empty: no mail. Better given by ZEROCRON_MAIL_URL_FILE: it holds a password.",
        is_secret=True,
    )
    mail_from: str = _knob(
        "", "The sender of mails, such as 0cron@example.com or '0cron <0cron@example.com>'; needed with mail_url."
    )
    apprise: bool = _knob(
        False,
        "Allow channels of kind apprise: a hundred more services, through a library that the guard of addresses does "
        "not see: whoever may create channels can then reach whatever this server can. Needs the extra apprise.",
    )
    metrics: bool = _knob(True, "Serve /metrics for Prometheus. It needs no key; switch it off where that matters.")
    development: bool = _knob(
        False, "Serve /-/specimens: every page with sample data, for whoever changes the pages. Shows nothing of yours."
    )
    log_level: str = _knob("info", "debug, info, warning or error.")
    log_format: str = _knob("auto", "json, text, or auto: text on a terminal, JSON elsewhere.")

    @property
    def mail(self) -> Mail | None:
        """The mail server; None where none is set up."""
        return read_mail(self.mail_url, self.mail_from) if self.mail_url else None

    @property
    def proxies(self) -> TrustedProxies:
        """The proxies that are believed."""
        return parse_proxies(self.trusted_proxies)

    @property
    def limits(self) -> Limits:
        """Of teams that have none of their own."""
        given = (self.team_jobs_max, self.team_runs_per_minute_max, self.team_history_bytes_max)
        return Limits(*(number or None for number in given))

    @property
    def database_path(self) -> Path:
        return self.data_dir / "zerocron.db"

    @property
    def local_key_path(self) -> Path:
        """The API key by which the command line on the same machine just works (0600)."""
        return self.data_dir / "local-key"

    @property
    def secret_key_path(self) -> Path:
        """The master key of a SQLite ledger when `secret_key` is empty (0600)."""
        return self.data_dir / "secret-key"

    @property
    def local_url_path(self) -> Path:
        """Where the running server says at which URL it listens."""
        return self.data_dir / "local-url"


CHOICES = {
    "role": ("all", "api", "engine"),
    "log_level": ("debug", "info", "warning", "error"),
    "log_format": ("auto", "json", "text"),
}


def load(overrides: Mapping[str, Any] | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """Settings from the environment, with the given ones on top. Raises Invalid naming every variable at fault."""
    environment = os.environ if environment is None else environment
    values: dict[str, Any] = {}
    faults: list[FieldError] = []
    for knob in fields(Settings):
        name = PREFIX + knob.name.upper()
        try:
            text = _text(environment, name)
            if text is not None:
                values[knob.name] = _read(knob, text)
        except (ValueError, OSError) as error:
            faults.append(FieldError(name, str(error)))
    known = {PREFIX + knob.name.upper() for knob in fields(Settings)} | CLIENT_VARIABLES
    for name in sorted(environment):
        if name.startswith(PREFIX) and name.removesuffix("_FILE") not in known:
            faults.append(FieldError(name, "there is no such setting; see docs/settings.md"))
    knobs = {knob.name: knob for knob in fields(Settings)}
    for key, value in (overrides or {}).items():
        if value is not None:
            values[key] = value
            try:
                _check_bounds(knobs[key], value)
            except ValueError as error:
                faults.append(FieldError(key, str(error)))
    if faults:
        raise Invalid("; ".join(f"{fault.field}: {fault.message}" for fault in faults), fields=faults)
    settings = Settings(**values)
    _check_together(settings)
    return settings


def _check_together(settings: Settings) -> None:
    """Raises Invalid for values that are right by themselves but not beside each other."""
    if settings.base_url:
        try:
            check_url(settings.base_url)
        except Invalid as error:
            raise Invalid(f"{PREFIX}BASE_URL: {error.message}", field=PREFIX + "BASE_URL") from None
    proxies = settings.proxies
    if settings.trusted_header:
        _check_trusted_header(settings.trusted_header, is_behind_proxies=bool(proxies))
    parse_domains(settings.sign_up_domains)
    _check_oidc(settings)
    if settings.mail_from and not settings.mail_url:
        raise Invalid(
            f"{FROM_SETTING}: a sender without a server; set {URL_SETTING}=smtp://..., or leave both out.",
            field=FROM_SETTING,
        )
    if settings.mail_url:
        read_mail(settings.mail_url, settings.mail_from)
    if settings.apprise and find_spec("apprise") is None:
        raise Invalid(
            f"{PREFIX}APPRISE: the library is not installed; run pip install '0cron[apprise]', or leave it out.",
            field=PREFIX + "APPRISE",
        )
    if settings.redis_url and not settings.database_url:
        raise Invalid(
            f"{PREFIX}REDIS_URL: a shared timetable needs a shared ledger; set {PREFIX}DATABASE_URL=postgresql://..., "
            "or leave both out for one node.",
            field=PREFIX + "REDIS_URL",
        )
    if settings.role != "all" and not settings.database_url:
        raise Invalid(
            f"{PREFIX}ROLE: a SQLite file belongs to one process, which has to be all; set "
            f"{PREFIX}DATABASE_URL=postgresql://... to split the roles.",
            field=PREFIX + "ROLE",
        )
    if settings.role == "api" and not settings.redis_url:
        raise Invalid(
            f"{PREFIX}ROLE: a node that only serves the API tells the engines through Redis what is due; set "
            f"{PREFIX}REDIS_URL=redis://...",
            field=PREFIX + "ROLE",
        )


def _check_oidc(settings: Settings) -> None:
    given = {"ID": settings.oidc_client_id, "SECRET": settings.oidc_client_secret}
    if not settings.oidc_issuer:
        for name, value in given.items():
            if value:
                variable = f"{PREFIX}OIDC_CLIENT_{name}"
                raise Invalid(f"{variable}: a client without an issuer; set {PREFIX}OIDC_ISSUER.", field=variable)
        return
    variable = PREFIX + "OIDC_ISSUER"
    check_issuer(settings.oidc_issuer, variable)
    if not settings.oidc_client_id:
        raise Invalid(
            f"{variable}: the issuer has to know this server; register it there, and set {PREFIX}OIDC_CLIENT_ID.",
            field=variable,
        )
    if not settings.base_url:
        raise Invalid(
            f"{variable}: the issuer sends people back to {PREFIX}BASE_URL; set it, such as https://cron.example.com.",
            field=variable,
        )


def _check_trusted_header(name: str, *, is_behind_proxies: bool) -> None:
    variable = PREFIX + "TRUSTED_HEADER"
    if not is_behind_proxies:
        raise Invalid(
            f"{variable}: without {PREFIX}TRUSTED_PROXIES nobody is believed who sends it, and with everybody believed "
            "anybody could sign in as anybody. Name your proxies.",
            field=variable,
        )
    if not _HEADER_NAME.fullmatch(name) or name.lower() in _TAKEN_HEADERS:
        raise Invalid(f"{variable}: {name!r} is no header of its own. Name one such as Remote-Email.", field=variable)


_HEADER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}", re.ASCII)
_TAKEN_HEADERS = frozenset(
    ("authorization", "content-length", "content-type", "cookie", "host", "x-forwarded-for", "x-forwarded-proto")
)

CLIENT_VARIABLES = {PREFIX + "API_URL", PREFIX + "API_KEY", PREFIX + "STOP_AT"}
"""Read by the command line's client, and by fault tests, rather than by the server."""


def client_variable(name: str) -> str | None:
    """`ZEROCRON_<name>` for the command line's client, or the content of its file; None when neither is there."""
    try:
        return _text(os.environ, PREFIX + name)
    except OSError as error:
        raise Invalid(f"{PREFIX}{name}_FILE: {error}") from None


def _text(environment: Mapping[str, str], name: str) -> str | None:
    if name in environment:
        return environment[name]
    file = environment.get(f"{name}_FILE")
    return None if file is None else Path(file).read_text(encoding="utf-8").strip()


def _read(knob: dataclasses.Field[Any], text: str) -> Any:
    kind: type[Any] = type(knob.default)
    if knob.name in CHOICES:
        if text.lower() not in CHOICES[knob.name]:
            raise ValueError(f"{text!r} is none of {', '.join(CHOICES[knob.name])}")
        return text.lower()
    if kind is bool:
        if text.lower() not in ("true", "false", "1", "0", "yes", "no", "on", "off"):
            raise ValueError(f"{text!r} is neither true nor false")
        return text.lower() in ("true", "1", "yes", "on")
    if kind in (int, float):
        return _number(knob, kind, text)
    return Path(text) if isinstance(knob.default, Path) else text


def _number(knob: dataclasses.Field[Any], kind: type[int] | type[float], text: str) -> float:
    try:
        number = kind(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None
    _check_bounds(knob, number)
    return number


def _check_bounds(knob: dataclasses.Field[Any], value: Any) -> None:
    low, high = knob.metadata["low"], knob.metadata["high"]
    if low is not None and not low <= value <= high:
        raise ValueError(f"{value} is not between {low} and {high}")
