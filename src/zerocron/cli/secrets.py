"""`0cron secrets ...`: values that jobs send and nobody sees.

A value comes from standard input, a file or a prompt that shows nothing. It is never an argument: those are seen by
every user of the machine and kept in the shell's history.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from zerocron.cli import options as o
from zerocron.cli import times
from zerocron.cli.asking import ask
from zerocron.cli.client import Client, find_server, segment
from zerocron.cli.program import program
from zerocron.cli.show import clean, note, plural, print_json, print_result, print_table, say, table
from zerocron.clock import SystemClock
from zerocron.core.errors import Invalid
from zerocron.core.secret import VALUE_BYTES_MAX, check_name, check_value

app = typer.Typer(help="Secrets: values that jobs send and nobody sees.")

Name = Annotated[str, typer.Argument(metavar="KEY", help="Its name, such as STRIPE_KEY.", show_default=False)]


@app.command("set")
def set_secret(
    name: Name,
    from_file: Annotated[
        Path | None,
        typer.Option("--from-file", metavar="FILE", help="Read the value from a file. Else standard input, or asked."),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="HOST",
            help="Bind it to a host, or to *.example.com; may be repeated. Without it the hosts stay as they are.",
        ),
    ] = None,
    any_host: Annotated[bool, typer.Option("--any-host", help="Lift its bounds to hosts.")] = False,
    as_json: o.AsJson = False,
    api_url: o.ApiUrl = None,
    api_key: o.ApiKey = None,
    data_dir: o.DataDir = None,
) -> None:
    """Make a secret, or give it a new value, which the next execution uses.

    The value comes from standard input, a file or a prompt that shows nothing; one line end behind it is left out.
    Jobs use it as ${secrets.KEY} in their URL, header values and body.
    """
    if allow_host and any_host:
        raise Invalid("--allow-host and --any-host contradict each other.")
    check_name(name)
    client = Client(find_server(api_url, api_key, data_dir))
    document: dict[str, object] = {"value": check_value(_value(name, from_file))}
    if allow_host or any_host:
        document["allowed_hosts"] = allow_host or []
    made = client.send("PUT", f"/v1/secrets/{segment(name)}", document)
    if as_json:
        print_json(made)
        return
    hosts = ", ".join(made["allowed_hosts"])
    say(f"Set {made['name']}" + (f", for {hosts} only." if hosts else "."))
    say(f"Jobs use it as   ${{secrets.{made['name']}}}")


@app.command("list")
@o.with_server
def list_secrets(client: Client, as_json: o.AsJson = False) -> None:
    """List the secrets by name. Their values are shown to nobody."""
    page = client.pages("/v1/secrets", limit=None)
    if as_json:
        print_json(page)
        return
    now = SystemClock().now()
    made = table("NAME", "HOSTS", "CHANGED", "LAST USED")
    made.columns[0].no_wrap = True
    for secret in page["items"]:
        used = secret["last_used_at"]
        made.add_row(
            Text(clean(secret["name"])),
            Text(clean(", ".join(secret["allowed_hosts"]) or "any")),
            Text(times.relative(times.instant(secret["updated_at"]), now)),
            Text("never" if used is None else times.relative(times.instant(used), now)),
        )
    print_table(made)


@app.command()
@o.with_server
def delete(client: Client, name: Name, yes: o.Yes = False, as_json: o.AsJson = False) -> None:
    """Delete a secret. Runs that name it fail from now on. Asks first when it runs on a terminal."""
    ask(f"Delete {name} for good? Nobody can get its value back.", yes=yes, otherwise="Nothing was deleted.")
    client.send("DELETE", f"/v1/secrets/{segment(name)}")
    print_result({"name": name, "deleted": True}, as_json, f"Deleted {name}.")


@app.command()
@o.with_server
def rotate(client: Client, as_json: o.AsJson = False) -> None:
    """Seal all secrets of the server anew, under its newest master key. Jobs go on meanwhile.

    To change the master key: put the new one before the old one in ZEROCRON_SECRET_KEY, on every node; restart them;
    run this; then take the old one out. It may be interrupted and repeated. It needs a key of the server's first
    team that may `admin`, such as the one that is used on the server's machine.
    """
    done = client.send("POST", "/v1/secrets/rotate")
    if as_json:
        print_json(done)
        return
    say(f"Sealed {plural(done['secrets'], 'secret')} anew. No older master key is needed any more.")


@app.command("new-key")
def new_key(as_json: o.AsJson = False) -> None:
    """Print a new master key, for ZEROCRON_SECRET_KEY or its file. Needs no server."""
    from zerocron.core.sealing import new_master_key

    key = new_master_key()
    if as_json:
        print_json({"key": key})
        return
    sys.stdout.write(key + "\n")
    if sys.stdout.isatty():
        note("Keep it where the ledger's backups are not: without it nobody can open the secrets in them.")
        note(f"Give it to every node as ZEROCRON_SECRET_KEY, or put the output of {program()} secrets new-key")
        note("into a file at once, and name that by ZEROCRON_SECRET_KEY_FILE.")


def _value(name: str, file: Path | None) -> str:
    if file is not None:
        return _read(file.read_bytes())
    if sys.stdin.isatty():
        return str(typer.prompt(f"Value of {clean(name)}", hide_input=True, confirmation_prompt=True, err=True))
    return _read(sys.stdin.buffer.read(VALUE_BYTES_MAX + 3))


def _read(content: bytes) -> str:
    """The value without one line end behind it, which editors and `echo` add."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise Invalid("The value is not text in UTF-8. Encode it first, in base64 for instance.") from None
    return text.removesuffix("\n").removesuffix("\r")
