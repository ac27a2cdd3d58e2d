"""What the settings say about time is what requests are sent with."""

from __future__ import annotations

from runtime.settings import Settings
from runtime.transport_settings import transport_settings


def test_milliseconds_become_seconds() -> None:
    made = transport_settings(
        Settings(
            http_connect_timeout_ms=1500, http_idle_timeout_ms=2500, http_total_timeout_ms=3500, stream_deadline_ms=4500
        )
    )
    assert (made.connect_timeout_s, made.idle_timeout_s, made.total_timeout_s, made.event_timeout_s) == (
        1.5,
        2.5,
        3.5,
        4.5,
    )


def test_zero_is_no_limit() -> None:
    made = transport_settings(
        Settings(http_connect_timeout_ms=0, http_idle_timeout_ms=0, http_total_timeout_ms=0, stream_deadline_ms=0)
    )
    limits = (made.connect_timeout_s, made.idle_timeout_s, made.total_timeout_s, made.event_timeout_s)
    assert limits == (None, None, None, None)


def test_an_answer_may_take_what_the_provider_is_given_and_else_as_long_as_a_silence() -> None:
    assert transport_settings(Settings(http_idle_timeout_ms=7000)).answer_timeout_s == 7
    assert transport_settings(Settings(http_idle_timeout_ms=7000, provider_timeout_ms=3000)).answer_timeout_s == 3


def test_the_proxy_and_the_certificates_are_those_of_the_user() -> None:
    made = transport_settings(Settings(http_proxy="http://p:1", no_proxy=("example.org",), ca_file="/ca.pem"))
    assert (made.proxy, made.no_proxy, made.ca_file) == ("http://p:1", ("example.org",), "/ca.pem")
