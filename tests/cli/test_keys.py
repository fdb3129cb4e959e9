"""`0cron keys ...`: a key is made, used, listed and revoked; and what a refused key looks like."""

from __future__ import annotations

from tests.cli.support import Cli


def test_the_life_of_a_key(home: Cli) -> None:
    made = home("keys", "create", "Alice's laptop", "--scope", "admin", "--json").json
    assert made["name"] == "Alice's laptop"
    assert made["key"].startswith(f"0c_{made['id']}_")
    alice = home.with_environment(ZEROCRON_API_KEY=made["key"])
    listed = alice("keys", "list").out
    assert f"{made['id']}  Alice's laptop " in listed
    assert "(used now)" in listed
    assert made["key"] not in listed
    assert made["id"] in {key["id"] for key in alice.here("keys", "list", "--json").json["items"]}
    revoked = alice("keys", "revoke", made["id"]).out
    assert revoked.startswith(f"Revoked {made['id']}.\nIt was the key that this command used.")
    refused = alice.here("jobs", "list", code=3)
    assert "does not accept the API key from ZEROCRON_API_KEY." in refused.err
    assert made["key"] not in refused.err
    assert home.here("keys", "revoke", made["id"], code=4).err == "error: There is no such API key.\n"


def test_create_shows_the_key_and_how_to_use_it(home: Cli) -> None:
    shown = home("keys", "create", "build server").out
    assert "\n  0c_" in shown
    assert "keys revoke " in shown
    assert "Authorization: Bearer" in shown


def test_revoke_asks_on_a_terminal(home: Cli) -> None:
    made = home.api.send("POST", "/v1/api-keys", {"name": "asked about"})
    kept = home.on_terminal("keys", "revoke", made["id"], typed="n\n")
    assert (kept.code, "Nothing was revoked." in kept.out) == (1, True)
    assert home.here("keys", "revoke", made["id"], "--json").json == {"id": made["id"], "revoked": True}


def test_a_key_that_is_none_is_refused(home: Cli) -> None:
    refused = home("jobs", "list", "--key", "0c_nonsense", code=3)
    assert "does not accept the API key from --api-key." in refused.err
    assert "0c_nonsense" not in refused.err


def test_without_any_key_it_says_where_one_is(home: Cli, cli: Cli) -> None:
    url = (home.directory / "data" / "local-url").read_text().strip()
    refused = cli.here("jobs", "list", "--url", url, code=3)
    assert f"error: {url} asks for an API key, and there is none." in refused.err
    assert "ZEROCRON_API_KEY" in refused.err
    assert "local-key" in refused.err


def test_another_directory_finds_the_server_by_its_data(home: Cli, cli: Cli) -> None:
    assert cli.here("jobs", "list", "--json", "--data-dir", str(home.directory / "data")).json["next_cursor"] is None
    by_environment = cli.with_environment(ZEROCRON_DATA_DIR=str(home.directory / "data"))
    assert by_environment.here("keys", "list", "--json").json["items"]


def test_a_key_for_some_things_and_for_some_time(home: Cli) -> None:
    made = home("keys", "create", "dashboard", "--scope", "read", "--scope", "trigger", "--expires-in", "90d", "--json")
    assert made.json["scopes"] == ["read", "trigger"]
    assert made.json["expires_at"] is not None
    listed = " ".join(home.here("keys", "list").out.split())
    assert "read, trigger" in listed
    assert "in 90 d" in listed
    limited = home.with_environment(ZEROCRON_API_KEY=made.json["key"])
    assert limited.here("jobs", "list", "--json").json["next_cursor"] is None
    refused = limited.here("keys", "list", code=3).err
    assert refused.startswith("error: This API key lacks the scope admin. An owner or admin of the team can make one")


def test_what_a_new_key_may_is_shown(home: Cli) -> None:
    shown = home("keys", "create", "build server", "--expires-in", "2h").out
    assert "It may                read, write, trigger, ping-admin\n" in shown
    assert "It expires            in 2 h" in shown
    assert "no such" not in home("keys", "create", "x", "--scope", "everything", code=2).err
