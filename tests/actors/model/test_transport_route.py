"""Where a request goes is read off its URL and the proxy settings, and secrets in them stay there."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.model.route import BadUrl, Endpoint, parse_proxy, route_to

HOSTS = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?(\.[a-z]{2,5}){0,2}", fullmatch=True) | st.sampled_from(
    ["[::1]", "[fe80::1:2]", "127.0.0.1"]
)
TEXT = st.text("abcXYZ019-._~!$&'()*+,;=:%", max_size=12)
PARTS = st.tuples(
    st.sampled_from(["http", "https", "HTTPS"]),
    st.none() | TEXT | st.just("user:p@ss"),
    HOSTS,
    st.none() | st.integers(1, 65535),
    st.none() | TEXT,
    st.none() | TEXT,
)


@settings(max_examples=150, deadline=None)
@given(PARTS)
def test_a_url_is_split_as_the_standard_library_splits_it(
    parts: tuple[str, str | None, str, int | None, str, str],
) -> None:
    scheme, user, host, port, path, query = parts
    url = f"{scheme}://" + (f"{user}@" if user is not None else "") + host + (f":{port}" if port else "")
    url += (f"/{path}" if path is not None else "") + (f"?{query}" if query is not None else "")
    route, known = route_to(url, None, ()), urlsplit(url)
    default = 443 if known.scheme == "https" else 80
    assert route.origin == Endpoint(known.scheme, known.hostname or "", known.port or default)
    assert route.target == (known.path or "/") + (f"?{query}" if query is not None else "")
    assert "p@ss" not in repr(route)


def test_a_target_that_http_cannot_carry_is_percent_encoded() -> None:
    assert route_to("http://h/a b/\u00e9?q=\u20ac", None, ()).target == "/a%20b/%C3%A9?q=%E2%82%AC"


def test_a_host_in_another_script_is_named_in_ascii() -> None:
    assert route_to("https://b\u00fccher.example", None, ()).origin.host == "xn--bcher-kva.example"


def test_the_host_header_names_the_port_only_where_it_is_unusual() -> None:
    named = [route_to(url, None, ()).origin.authority for url in ("http://h:80", "https://h:80", "http://[::1]:81/")]
    assert named == ["h", "h:80", "[::1]:81"]


@pytest.mark.parametrize(
    "url", ["h", "http:/h", "http://", "ftp://h", "http://h:0", "http://h:70000", "http://a b", "http://h\r\nx: y"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(BadUrl, match="is not a http:// or https:// URL with a host"):
        route_to(url, None, ())


def test_a_proxy_takes_the_whole_url_of_plain_requests_only() -> None:
    plain = route_to("http://h:81/x?y", "http://p", ())
    secure = route_to("https://h:81/x?y", "http://p", ())
    by_socks = route_to("http://h:81/x?y", "socks5://p", ())
    assert [x.request_target for x in (plain, secure, by_socks)] == ["http://h:81/x?y", "/x?y", "/x?y"]
    assert [x.is_forwarded for x in (plain, secure, by_socks)] == [True, False, False]


@pytest.mark.parametrize(
    ("host", "no_proxy", "is_direct"),
    [
        ("model.example", (), False),
        ("model.example", ("model.example",), True),
        ("a.model.example", (".model.example",), True),
        ("a.model.example", ("model.example",), True),
        ("amodel.example", ("model.example",), False),
        ("model.example", ("*",), True),
    ],
)
def test_some_hosts_bypass_the_proxy(host: str, no_proxy: tuple[str, ...], is_direct: bool) -> None:
    assert (route_to(f"http://{host}", "http://p", no_proxy).proxy is None) == is_direct


def test_user_and_password_of_a_proxy_are_decoded_and_never_shown() -> None:
    proxy = parse_proxy("http://us%40er:se%3Acret@p:3128")
    assert (proxy.endpoint, proxy.user, proxy.password) == (Endpoint("http", "p", 3128), "us@er", "se:cret")
    assert proxy.authorization == (("proxy-authorization", "Basic dXNAZXI6c2U6Y3JldA=="),)
    assert "cret" not in repr(proxy)
    assert parse_proxy("socks5://p").endpoint.port == 1080


def test_a_proxy_of_another_kind_is_named_without_its_secrets() -> None:
    with pytest.raises(BadUrl) as raised:
        route_to("http://h", "ftp://user:secret@p", ())
    assert str(raised.value) == "The proxy 'p' is not a http://, https:// or socks5:// URL with a host"
