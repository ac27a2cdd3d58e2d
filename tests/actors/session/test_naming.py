"""Folders, file names, ids and times of the session store."""

from __future__ import annotations

import pytest

from actors.session.naming import (
    BAD_SESSION_ID,
    BadSessionId,
    agent_dir,
    checked_session_id,
    default_session_dir,
    epoch_ms,
    expand_home,
    iso_time,
    session_dir,
    session_file_name,
)


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"ATOMIC_CODING_AGENT_DIR": "/a", "PI_CODING_AGENT_DIR": "/p"}, "/a"),
        ({"ATOMIC_CODING_AGENT_DIR": "", "PI_CODING_AGENT_DIR": "~/p", "HOME": "/home/u"}, "/home/u/p"),
        ({"HOME": "/home/u"}, "/home/u/.atomic/agent"),
        ({"USERPROFILE": "/users/u"}, "/users/u/.atomic/agent"),
        ({}, "/os/.atomic/agent"),
    ],
)
def test_the_agent_dir_is_the_first_that_is_named(env: dict[str, str], expected: str) -> None:
    assert agent_dir(env, "/os") == expected


@pytest.mark.parametrize(
    ("cwd", "name"),
    [
        ("/home/u/my proj/a.b", "--home-u-my proj-a.b--"),
        ("/", "----"),
        ("/a/../b_c/./D-e/", "--b_c-D-e--"),
        ("//net/x", "--net-x--"),
        ("/with:colon\\slash", "--with-colon-slash--"),
    ],
)
def test_the_default_folder_is_named_after_the_working_directory(cwd: str, name: str) -> None:
    assert default_session_dir("/agent", cwd) == f"/agent/sessions/{name}"


def test_a_chosen_session_dir_is_flat_and_flag_beats_environment_beats_setting() -> None:
    env = {"HOME": "/h", "PI_CODING_AGENT_SESSION_DIR": "/pi"}
    assert session_dir(env, "/os", "/w", flag="rel", setting="/set") == ("/w/rel", True)
    assert session_dir(env, "/os", "/w", setting="/set") == ("/pi", True)
    assert session_dir({**env, "ATOMIC_CODING_AGENT_SESSION_DIR": "~/at"}, "/os", "/w") == ("/h/at", True)
    assert session_dir({"HOME": "/h"}, "/os", "/w", setting="/set") == ("/set", True)
    assert session_dir({"HOME": "/h"}, "/os", "/w") == ("/h/.atomic/agent/sessions/--w--", False)


def test_only_a_leading_tilde_of_ones_own_is_expanded() -> None:
    assert [expand_home(path, "/h") for path in ("~", "~/x", "~other/x", "a/~")] == ["/h", "/h/x", "~other/x", "a/~"]


def test_the_file_name_is_time_and_id() -> None:
    assert session_file_name("2026-11-29T19:54:57.727Z", "01a228df") == "2026-11-29T19-54-57-727Z_01a228df.jsonl"


@pytest.mark.parametrize("good", ["a", "0190-aa", "A.b_c-9"])
def test_good_ids_are_taken(good: str) -> None:
    assert checked_session_id(good) == good


@pytest.mark.parametrize("bad", ["", "-a", "a-", ".", "a/b", "a b", "\u00e9", "a\n", "\u0661"])
def test_bad_ids_are_refused(bad: str) -> None:
    with pytest.raises(BadSessionId) as caught:
        checked_session_id(bad)
    assert str(caught.value) == BAD_SESSION_ID


@pytest.mark.parametrize("ms", [0, 1, 1769940005000, 1769940005999, 253402300799999])
def test_times_are_iso_with_milliseconds_and_come_back(ms: int) -> None:
    assert epoch_ms(iso_time(ms)) == ms


def test_iso_time_has_the_form_of_the_files() -> None:
    assert iso_time(1769940005000) == "2026-02-01T10:00:05.000Z"


@pytest.mark.parametrize(("text", "ms"), [("", 0), ("yesterday", 0), ("1970-01-01T00:00:01", 1000)])
def test_what_is_no_time_is_zero_and_a_missing_zone_is_utc(text: str, ms: int) -> None:
    assert epoch_ms(text) == ms
