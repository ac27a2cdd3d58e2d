"""Settings: which file wins, what a bad value costs, and what a save leaves alone."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from runtime.agent_definitions import BUILT_IN
from runtime.setting_keys import BUILT_IN_AGENTS, KEYS, NotAllowed, read_document
from runtime.settings import Settings, SettingsError, file_of, load_settings, save_setting

SAVED = [("steeringMode",), ("retry", "enabled"), ("compaction", "enabled"), ("defaultModel",)]


class Place:
    """An agent directory and a project."""

    def __init__(self, root: Path) -> None:
        self.agent, self.project = root / "agent", root / "project"
        self.agent.mkdir()
        (self.project / ".atomic").mkdir(parents=True)
        self.user_file = self.agent / "settings.json"
        self.project_file = self.project / ".atomic" / "settings.json"

    def load(self, user: Any = None, project: Any = None, **more: Any) -> tuple[Settings, list[str]]:
        for path, content in ((self.user_file, user), (self.project_file, project)):
            if content is not None:
                path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        env = more.pop("env", {"HOME": str(self.agent.parent)})
        return load_settings(str(self.agent), str(self.project), env, more.pop("trusted", True), **more)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_without_files_everything_has_its_default(place: Place) -> None:
    settings, warnings = place.load()
    assert warnings == []
    assert (settings.steering_mode, settings.http_idle_timeout_ms, settings.stream_deadline_ms) == (
        "one-at-a-time",
        600000,
        300000,
    )
    assert (settings.retry_max_retries, settings.default_thinking_level) == (3, None)


def test_tasks_and_subagents_have_the_defaults_of_the_contract(place: Place) -> None:
    found, _ = place.load()
    waits = (found.task_wait, found.task_command_budget_ms, found.task_agent_budget_ms)
    assert waits == ("automatic", 10_000, 30_000)
    assert (found.running_subagents, found.max_subagents, found.worktree_hook_timeout_ms) == (4, 50, 30_000)
    document = {
        "tasks": {"wait": {"kind": "until-settled", "commandBudgetMs": 0, "agentBudgetMs": 7}},
        "subagents": {"concurrency": 2, "maxTasks": 3, "worktreeHookTimeoutMs": 9},
    }
    asked, warnings = place.load(document)
    assert warnings == []
    waits = (asked.task_wait, asked.task_command_budget_ms, asked.task_agent_budget_ms)
    assert waits == ("until-settled", 0, 7)
    assert (asked.running_subagents, asked.max_subagents, asked.worktree_hook_timeout_ms) == (2, 3, 9)


def test_the_project_wins_key_by_key(place: Place) -> None:
    settings, _ = place.load(
        {"retry": {"maxRetries": 9, "baseDelayMs": 5}, "defaultModel": "a"}, {"retry": {"maxRetries": 1}}
    )
    assert (settings.retry_max_retries, settings.retry_base_delay_ms, settings.default_model) == (1, 5, "a")


def test_an_untrusted_project_has_no_say(place: Place) -> None:
    assert place.load({}, {"steeringMode": "all"}, trusted=False)[0].steering_mode == "one-at-a-time"


def test_proxy_certificates_and_trust_are_the_users_alone(place: Place) -> None:
    project = {"httpProxy": "http://evil", "defaultProjectTrust": "always", "caFile": "/evil.pem"}
    settings, _ = place.load({}, project)
    assert (settings.http_proxy, settings.default_project_trust, settings.ca_file) == (None, "ask", None)


def test_null_counts_as_absent(place: Place) -> None:
    settings, warnings = place.load({"steeringMode": None, "retry": None})
    assert (settings.steering_mode, settings.retry_enabled, warnings) == ("one-at-a-time", True, [])


def test_null_in_a_stronger_file_unsets_what_a_weaker_one_says(place: Place) -> None:
    user = {
        "defaultModel": "m",
        "steeringMode": "all",
        "retry": {"maxRetries": 9, "provider": {"maxRetries": 8}},
        "thinkingBudgets": {"low": 7},
        "search": {"contextBefore": 5, "contextAfter": 5},
    }
    project = {
        "defaultModel": None,
        "retry": None,
        "thinkingBudgets": None,
        "search": {"contextBefore": None},
    }
    settings, warnings = place.load(user, project)
    told = (settings.default_model, settings.retry_max_retries, settings.provider_max_retries)
    assert told == (None, 3, 0)
    assert (settings.thinking_budgets, settings.search_context_before, settings.search_context_after) == ({}, 1, 5)
    assert (settings.steering_mode, warnings) == ("all", [])


def test_null_of_a_project_does_not_unset_what_is_the_users_alone(place: Place) -> None:
    settings, _ = place.load({"httpProxy": "http://p:1"}, {"httpProxy": None, "caFile": None})
    assert settings.http_proxy == "http://p:1"


def test_a_broken_file_is_one_warning_and_no_settings(place: Place) -> None:
    settings, warnings = place.load('{"steeringMode": "all",\n "mine": 1,}', {"followUpMode": "all"})
    assert (settings.steering_mode, settings.follow_up_mode) == ("one-at-a-time", "all")
    assert len(warnings) == 1
    assert warnings[0].startswith("(startup, global settings) ")
    assert "line 2" in warnings[0]


def test_a_file_that_breaks_later_keeps_its_earlier_values_on_reload(place: Place) -> None:
    first, _ = place.load({"steeringMode": "all"})
    again, warnings = place.load("{", previous=first, context="reload")
    assert again.steering_mode == "all"
    assert warnings[0].startswith("(reload, global settings) ")


@pytest.mark.parametrize("content", ["[]", "3", "null"])
def test_a_file_that_holds_no_object_is_broken(place: Place, content: str) -> None:
    assert len(place.load(content)[1]) == 1


def test_a_byte_order_mark_is_no_fault(place: Place) -> None:
    place.user_file.write_bytes(b'\xef\xbb\xbf{"steeringMode": "all"}')
    assert place.load()[0].steering_mode == "all"


@pytest.mark.parametrize(
    ("document", "key"),
    [
        ({"steeringMode": "sometimes"}, "steeringMode"),
        ({"retry": {"maxRetries": -1}}, "retry.maxRetries"),
        ({"retry": {"maxRetries": True}}, "retry.maxRetries"),
        ({"retry": 7}, "retry"),
        ({"images": {"blockImages": "no"}}, "images.blockImages"),
        ({"defaultTools": "read"}, "defaultTools"),
        ({"compaction": {"compression_ratio": 1}}, "compaction.compression_ratio"),
        *(
            ({"compaction": {"modelOverrides": bad}}, "compaction.modelOverrides")
            for bad in (
                7,
                {"p/m": 7},
                {"p/m": {"reserveTokens": -1}},
                {"p/m": {"preserve_recent": 1.5}},
                {"p/m": {"preserve_recent": "2"}},
                {"p/m": {"reserveTokens": 2**53}},
            )
        ),
        ({"thinkingBudgets": {"low": "x"}}, "thinkingBudgets"),
        ({"httpIdleTimeoutMs": "5 parsecs"}, "httpIdleTimeoutMs"),
        ({"streamDeadlineMs": -1}, "streamDeadlineMs"),
        ({"defaultThinkingLevel": "hard"}, "defaultThinkingLevel"),
        ({"retry": {"maxRetries": 1e300}}, "retry.maxRetries"),
        ({"retry": {"provider": {"maxRetryDelayMs": 2**64}}}, "retry.provider.maxRetryDelayMs"),
        ({"search": {"contextBefore": 1.5}}, "search.contextBefore"),
        *(({"subagents": {"concurrency": bad}}, "subagents.concurrency") for bad in (0, 5, 1.5, "2", True)),
        *(({"subagents": {"maxTasks": bad}}, "subagents.maxTasks") for bad in (0, 51, -1, [])),
        *(
            ({"subagents": {"agentOverrides": bad}}, "subagents.agentOverrides")
            for bad in (
                7,
                {"scout": 7},
                {"nobody": {"model": "m"}},
                {"scout": {"colour": "red"}},
                {"scout": {"name": "other"}},
                {"scout": {"disabled": "yes"}},
                {"scout": {"tools": [1]}},
                {"scout": {"thinking": "much"}},
                {"scout": {"defaultContext": "half"}},
                {"scout": {"systemPrompt": " "}},
            )
        ),
        ({"sessionDir": "a\0b"}, "sessionDir"),
        ({"shellPath": "\ud800"}, "shellPath"),
        ({"caFile": " "}, "caFile"),
        ({"httpIdleTimeoutMs": "9" * 400}, "httpIdleTimeoutMs"),
    ],
)
def test_a_bad_value_costs_one_warning_that_names_it(place: Place, document: dict[str, Any], key: str) -> None:
    settings, warnings = place.load(document)
    assert [warning for warning in warnings if warning.startswith(f"Invalid {key} setting: ")] == warnings
    assert len(warnings) == 1
    assert "allowed: " in warnings[0]
    untouched = place.load({})[0]
    assert all(
        getattr(settings, name) == getattr(untouched, name)
        for name in Settings.__struct_fields__
        if name != "documents"
    )


def test_the_budgets_of_models_are_merged_field_by_field(place: Place) -> None:
    user = {"compaction": {"modelOverrides": {"p/m": {"reserveTokens": 1, "preserve_recent": 2}, "p/n": {}}}}
    project = {"compaction": {"modelOverrides": {"p/m": {"reserveTokens": 9, "other": 1}}}}
    settings, warnings = place.load(user, project)
    assert settings.model_budgets == {"p/m": {"reserveTokens": 9, "preserve_recent": 2}, "p/n": {}}
    assert not warnings


def test_a_bad_value_of_the_project_does_not_hide_the_users(place: Place) -> None:
    assert place.load({"steeringMode": "all"}, {"steeringMode": 1})[0].steering_mode == "all"


@pytest.mark.parametrize(
    ("value", "milliseconds"),
    [
        (1500, 1500),
        ("1500", 1500),
        ("500ms", 500),
        ("30s", 30000),
        ("5m", 300000),
        ("1h", 3600000),
        ("disabled", 0),
        (" Disabled ", 0),
        (0, 0),
        ("0.5s", 500),
        ("5 m", 300000),
        (10**400, 2_000_000_000),
        ("9999999999h", 2_000_000_000),
    ],
)
def test_a_time_may_be_written_in_several_ways(place: Place, value: object, milliseconds: int) -> None:
    assert place.load({"httpIdleTimeoutMs": value})[0].http_idle_timeout_ms == milliseconds


def test_lists_keep_their_strings_trimmed_and_drop_the_rest(place: Place) -> None:
    assert place.load({"fallbackModels": [" a/b ", 3, "", None, "c"]})[0].fallback_models == ("a/b", "c")


def test_older_names_still_count_and_yield_to_the_newer(place: Place) -> None:
    settings, _ = place.load({"queueMode": "all", "retry": {"maxDelayMs": 7}})
    assert (settings.steering_mode, settings.provider_max_retry_delay_ms) == ("all", 7)
    assert place.load({"queueMode": "all", "steeringMode": "one-at-a-time"})[0].steering_mode == "one-at-a-time"


def test_thinking_budgets_of_both_scopes_add_up(place: Place) -> None:
    settings, _ = place.load({"thinkingBudgets": {"low": 1, "high": 2}}, {"thinkingBudgets": {"low": 3}})
    assert settings.thinking_budgets == {"low": 3, "high": 2}


def test_the_environment_sets_proxy_cache_and_certificates(place: Place) -> None:
    env = {"HOME": "/h", "HTTPS_PROXY": "http://p:1", "NO_PROXY": "a.b, c", "PI_CACHE_RETENTION": "long"}
    settings, _ = place.load({"httpProxy": "http://other"}, env={**env, "SSL_CERT_FILE": "/ca.pem"})
    assert (settings.http_proxy, settings.cache_retention, settings.ca_file) == ("http://p:1", "long", "/ca.pem")
    assert settings.no_proxy[-2:] == ("a.b", "c")
    assert "127.0.0.1" in settings.no_proxy
    assert place.load({"caFile": "~/mine.pem"}, env={**env, "SSL_CERT_FILE": "/ca.pem"})[0].ca_file == "/h/mine.pem"


def test_a_proxy_of_the_settings_is_told_to_shell_commands_where_the_environment_has_none(place: Place) -> None:
    loopback = ("NO_PROXY", "localhost,127.0.0.1,::1")
    proxies = (("HTTP_PROXY", "http://p:1"), ("HTTPS_PROXY", "http://p:1"))
    assert place.load({"httpProxy": "http://p:1"})[0].child_variables == (*proxies, loopback)
    env = {"HOME": "/h", "https_proxy": "http://q:2", "NO_PROXY": "h"}
    assert place.load(env=env)[0].child_variables == proxies[:1]
    assert place.load({}, env={"HOME": "/h", "HTTPS_PROXY": "http://q:2"})[0].child_variables == ()


def test_legacy_files_lie_under_ours_for_the_default_agent_directory(tmp_path: Path) -> None:
    agent, older = tmp_path / ".atomic" / "agent", tmp_path / ".pi" / "agent"
    for folder, document in ((agent, {"steeringMode": "all"}), (older, {"steeringMode": 1, "followUpMode": "all"})):
        folder.mkdir(parents=True)
        (folder / "settings.json").write_text(json.dumps(document), encoding="utf-8")
    settings, _ = load_settings(str(agent), str(tmp_path / "p"), {"HOME": str(tmp_path)}, True)
    assert (settings.steering_mode, settings.follow_up_mode) == ("all", "all")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


def nested(path: tuple[str, ...], value: Any) -> Any:
    return value if not path else {path[0]: nested(path[1:], value)}


one_key = st.builds(lambda key, value: nested(key.path, value), st.sampled_from(KEYS), json_values)
documents = one_key | st.dictionaries(st.sampled_from(sorted({key.path[0] for key in KEYS})), json_values)


@given(documents)
def test_no_value_whatever_stops_the_reading(document: dict[str, Any]) -> None:
    warnings: list[str] = []
    found = dict(read_document(document, "global", warnings))
    assert all(line.startswith("Invalid ") for line in warnings)
    assert set(found) <= set(Settings.__struct_fields__)
    msgspec.json.encode({name: value for name, value in found.items() if name != "documents"})


@hypothesis_settings(max_examples=40, deadline=None)
@given(one_key)
def test_each_fault_of_one_key_costs_one_warning_and_the_default(document: dict[str, Any]) -> None:
    with TemporaryDirectory() as root:
        place = Place(Path(root))
        settings, warnings = place.load(document)
        assert len(warnings) <= 1
        if warnings and not warnings[0].endswith("the others count"):
            assert msgspec.structs.replace(settings, documents=()) == msgspec.structs.replace(
                place.load({})[0], documents=()
            )


@hypothesis_settings(max_examples=60, deadline=None)
@given(st.binary(max_size=30) | documents.map(lambda document: json.dumps(document).encode()), st.sampled_from(SAVED))
def test_a_save_changes_one_key_or_nothing(content: bytes, path: tuple[str, ...]) -> None:
    with TemporaryDirectory() as root:
        file = Path(root) / "settings.json"
        file.write_bytes(content)
        try:
            save_setting(root, path, "SAVED")
        except SettingsError:
            assert file.read_bytes() == content
            return
        before, after = json.loads(content.decode("utf-8-sig")), json.loads(file.read_bytes())
        section, kept = after, before
        for name in path[:-1]:
            section, kept = section[name], (kept or {}).get(name)
        assert section.pop(path[-1]) == "SAVED"
        (kept or {}).pop(path[-1], None)
        assert _pruned(after) == _pruned(before)


def _pruned(document: dict[str, Any]) -> dict[str, Any]:
    """Without sections that hold nothing: a save makes those that it needs."""
    whole = {name: _pruned(value) if isinstance(value, dict) else value for name, value in document.items()}
    return {name: value for name, value in whole.items() if value not in ({}, None)}


MAPS = [
    ("model_thinking_levels", "modelThinkingLevels", {"a/b": "low"}, {"c/d": "bogus", "e/f": 7}),
    ("thinking_budgets", "thinkingBudgets", {"low": 1}, {"high": -1, "ultra": 5}),
    ("model_budgets", "compaction.modelOverrides", {"a/b": {"reserveTokens": 1}}, {"c/d": 7}),
    ("agent_overrides", "subagents.agentOverrides", {"scout": {"model": "m"}}, {"scoot": {}, "worker": 7}),
    ("task_keys", "tasks.keys", {"stop": ("k", "f8")}, {"back": "enter", "nope": "k", "pageUp": 7}),
    ("fallback_models", "fallbackModels", ["a/b"], [7, " "]),
    ("enabled_models", "enabledModels", ["a/b"], [None]),
    ("default_tools", "defaultTools", ["read"], [{}]),
]


def test_the_agents_that_may_be_overridden_are_those_of_the_program() -> None:
    assert sorted(name.removesuffix(".md") for name in os.listdir(BUILT_IN)) == list(BUILT_IN_AGENTS)


def test_every_key_that_holds_entries_is_tried_below() -> None:
    """A key whose reader takes an array or an object belongs into MAPS."""
    holding = set()
    for key in KEYS:
        for empty in ([], {}):
            with contextlib.suppress(NotAllowed):
                key.read(empty)
                holding.add(".".join(key.path))
    assert holding == {name for _, name, _, _ in MAPS}


@pytest.mark.parametrize(("attribute", "name", "good", "bad"), MAPS)
def test_a_bad_entry_is_named_and_costs_itself_alone(
    place: Place, attribute: str, name: str, good: Any, bad: Any
) -> None:
    both = [*bad, *good] if isinstance(good, list) else {**bad, **good}
    settings, (line,) = place.load(nested(tuple(name.split(".")), both))
    value = getattr(settings, attribute)
    assert (list(value) if isinstance(good, list) else value) == good
    assert line.startswith(f"Invalid {name} setting: ")
    assert all(f"{json.dumps(entry)} is " in line for entry in bad) or isinstance(bad, list)
    assert line.count(" is ") == len(bad)


@pytest.mark.parametrize(("attribute", "name", "good", "bad"), MAPS)
def test_without_a_good_entry_it_is_as_if_nobody_had_said_it(
    place: Place, attribute: str, name: str, good: Any, bad: Any
) -> None:
    settings, warnings = place.load(nested(tuple(name.split(".")), bad))
    assert getattr(settings, attribute) == getattr(Settings(), attribute)
    assert len(warnings) == 1


def test_a_bad_field_of_a_model_budget_leaves_the_other_field(place: Place) -> None:
    fields = {"reserveTokens": 5, "preserve_recent": "2"}
    settings, (line,) = place.load({"compaction": {"modelOverrides": {"a/b": fields}}})
    assert settings.model_budgets == {"a/b": {"reserveTokens": 5}}
    assert '"a/b"."preserve_recent" is "2"' in line


def test_overrides_of_agents_are_merged_field_by_field_and_a_bad_one_leaves_the_others(place: Place) -> None:
    user = {"subagents": {"agentOverrides": {"scout": {"model": "m", "disabled": True, "tools": ["read", "ls"]}}}}
    project = {"subagents": {"agentOverrides": {"scout": {"disabled": False, "thinking": 7}, "worker": {}}}}
    settings, (line,) = place.load(user, project)
    scout = {"model": "m", "disabled": "false", "tools": "read,ls"}
    assert settings.agent_overrides == {"scout": scout, "worker": {}}
    assert '"scout"."thinking" is 7' in line


def test_of_many_bad_entries_the_first_are_told(place: Place) -> None:
    _, (line,) = place.load({"fallbackModels": [7] * 9})
    assert "[4] is 7" in line and " and 4 more " in line and "[5]" not in line


@pytest.mark.parametrize("key", ["httpProxy", "shellCommandPrefix"])
@pytest.mark.parametrize("value", [["http://u:s3cret@h"], {"x": "s3cret"}, "\ud800s3cret"])
def test_what_may_hold_a_secret_is_told_by_its_type(place: Place, key: str, value: Any) -> None:
    _, (line,) = place.load({key: value})
    assert "of type" in line and "s3cret" not in line


@pytest.mark.parametrize("key", KEYS, ids=lambda key: ".".join(key.path))
def test_no_value_with_a_lone_surrogate_counts(place: Place, key: Any) -> None:
    for value in ("\ud800", ["\ud800"], {"\ud800": "low"}):
        settings, warnings = place.load(nested(key.path, value))
        assert len(warnings) == 1
        msgspec.json.encode(msgspec.structs.replace(settings, documents=()))
        warnings[0].encode()


# ---- saving


def test_a_save_creates_folder_and_file(tmp_path: Path) -> None:
    save_setting(str(tmp_path / "new"), ("steeringMode",), "all")
    assert (tmp_path / "new" / "settings.json").read_text("utf-8") == '{\n  "steeringMode": "all"\n}\n'


def test_a_save_keeps_what_it_does_not_understand(place: Place) -> None:
    place.user_file.write_text('{"packages": ["p"], "big": 12345678901234567890123, "retry": {"mine": 1}}', "utf-8")
    save_setting(str(place.agent), ("retry", "enabled"), False)
    assert json.loads(place.user_file.read_text("utf-8")) == {
        "packages": ["p"],
        "big": 12345678901234567890123,
        "retry": {"mine": 1, "enabled": False},
    }


def test_an_edit_made_outside_survives_the_next_save(place: Place) -> None:
    save_setting(str(place.agent), ("steeringMode",), "all")
    document = json.loads(place.user_file.read_text("utf-8"))
    place.user_file.write_text(json.dumps({**document, "packages": ["new"]}), "utf-8")
    save_setting(str(place.agent), ("followUpMode",), "all")
    assert json.loads(place.user_file.read_text("utf-8"))["packages"] == ["new"]


@pytest.mark.parametrize("content", ['{"mine":1,}', "[]", '{"a": NaN}'])
def test_a_broken_file_is_never_overwritten(place: Place, content: str) -> None:
    place.user_file.write_text(content, "utf-8")
    with pytest.raises(SettingsError, match="was not saved"):
        save_setting(str(place.agent), ("steeringMode",), "all")
    assert place.user_file.read_text("utf-8") == content


@pytest.mark.parametrize("section", [7, "on", [1], False])
def test_what_stands_where_a_section_should_be_is_not_overwritten(place: Place, section: Any) -> None:
    content = json.dumps({"retry": section})
    place.user_file.write_text(content, "utf-8")
    with pytest.raises(SettingsError, match=r'"retry" must be an object, not .*was not saved'):
        save_setting(str(place.agent), ("retry", "enabled"), False)
    assert place.user_file.read_text("utf-8") == content
    save_setting(str(place.agent), ("steeringMode",), "all")
    assert json.loads(place.user_file.read_text("utf-8"))["retry"] == section


def test_a_save_refuses_to_turn_infinity_into_null(place: Place) -> None:
    place.user_file.write_text('{"huge": 1e999}', "utf-8")
    with pytest.raises(SettingsError):
        save_setting(str(place.agent), ("steeringMode",), "all")
    assert place.user_file.read_text("utf-8") == '{"huge": 1e999}'


def test_a_lone_surrogate_survives_a_save(place: Place) -> None:
    place.user_file.write_text('{"odd": "\\ud83d"}', "utf-8")
    save_setting(str(place.agent), ("steeringMode",), "all")
    assert json.loads(place.user_file.read_text("utf-8"))["odd"] == "\ud83d"


@pytest.mark.skipif(os.name == "nt", reason="modes and links of POSIX")
def test_a_save_keeps_mode_and_link(place: Place, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}", "utf-8")
    real.chmod(0o600)
    place.user_file.symlink_to(real)
    save_setting(str(place.agent), ("steeringMode",), "all")
    assert place.user_file.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o600
    assert json.loads(real.read_text("utf-8")) == {"steeringMode": "all"}


def test_processes_that_save_at_once_lose_nothing(place: Place) -> None:
    code = "import sys; from runtime.settings import save_setting; save_setting(sys.argv[1], (sys.argv[2],), 1)"
    names = [f"key{number}" for number in range(4)]
    root = Path(__file__).parents[2]
    running = [subprocess.Popen([sys.executable, "-c", code, str(place.agent), name], cwd=root) for name in names]
    assert [process.wait(30) for process in running] == [0, 0, 0, 0]
    assert json.loads(place.user_file.read_text("utf-8")) == dict.fromkeys(names, 1)
    assert [path for path in place.agent.iterdir() if path.suffix == ".tmp"] == []


def test_a_held_lock_ends_in_a_clear_error(place: Place) -> None:
    from filelock import FileLock

    with FileLock(str(place.user_file) + ".lock"), pytest.raises(SettingsError, match="locked by another process"):
        save_setting(str(place.agent), ("steeringMode",), "all")
    assert not place.user_file.exists()


def test_keys_that_mean_nothing_are_one_line_with_what_was_meant(place: Place) -> None:
    settings, warnings = place.load({"defualtModel": "m", "retry": {"maxRetrys": 1}, "zzz": 1, "steeringMode": "all"})
    assert warnings == [
        f'{place.user_file}: unknown keys "defualtModel" (did you mean "defaultModel"?), '
        '"retry.maxRetrys" (did you mean "retry.maxRetries"?), "zzz"'
    ]
    assert settings.steering_mode == "all"


def test_of_many_keys_that_mean_nothing_the_first_are_told(place: Place) -> None:
    _, (line,) = place.load({f"q{number}": 1 for number in range(9)})
    assert line.endswith('"q4" and 4 more')


def test_keys_of_the_reference_and_of_older_files_are_not_told(place: Place) -> None:
    (place.project / ".pi").mkdir()
    (place.project / ".pi" / "settings.json").write_text('{"quietStartup": true}')
    shared = {
        "theme": "dark",
        "quietStartup": True,
        "transport": "auto",
        "bashInterceptor": {"enabled": False},
        "$schema": "x",
    }
    known = {"queueMode": "all", "thinkingBudgets": {"low": 1}, "modelThinkingLevels": {"a/b": "low"}}
    assert place.load({**shared, **known})[1] == []


def test_the_file_of_a_setting_is_the_one_that_counts(place: Place) -> None:
    settings, _ = place.load({"defaultProvider": "a", "defaultModel": "b"}, {"defaultProvider": "c"})
    assert file_of(settings, "defaultProvider") == str(place.project_file)
    assert file_of(settings, "defaultModel") == str(place.user_file)
    assert file_of(settings, "sessionDir") is None
