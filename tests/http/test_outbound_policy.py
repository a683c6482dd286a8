"""The outbound policy, by tables: what is refused, however it is written, and what a configuration lets through."""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.errors import NotAllowed, OutboundRefused
from wakeful.outbound import OutboundPolicy, literal_ip, read_address, read_allowed, refusal

STRICT = OutboundPolicy()


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        ("0.0.0.0", "this machine"),  # noqa: S104 - nothing listens there
        ("10.1.2.3", "private"),
        ("172.16.0.1", "private"),
        ("172.31.255.255", "private"),
        ("192.168.0.1", "private"),
        ("100.64.0.1", "private"),
        ("100.100.100.200", "private"),
        ("169.254.169.254", "metadata"),
        ("169.254.170.2", "link-local"),
        ("168.63.129.16", "metadata"),
        ("192.0.0.192", "reserved"),
        ("198.18.0.1", "private"),
        ("203.0.113.7", "reserved"),
        ("224.0.0.1", "multicast"),
        ("255.255.255.255", "reserved"),
        ("::", "this machine"),
        ("::1", "loopback"),
        ("::127.0.0.1", "reserved"),
        ("::ffff:127.0.0.1", "loopback"),
        ("::ffff:169.254.169.254", "metadata"),
        ("::ffff:0:127.0.0.1", "reserved"),
        ("64:ff9b::7f00:1", "loopback"),
        ("64:ff9b::a9fe:a9fe", "metadata"),
        ("64:ff9b:1::1", "reserved"),
        ("fd00:ec2::254", "metadata"),
        ("fd12:3456::1", "private"),
        ("fe80::1", "link-local"),
        ("fec0::1", "private"),
        ("ff02::1", "multicast"),
        ("2001:db8::1", "reserved"),
        ("2001::7f00:1", "reserved"),
        ("2002:7f00:1::", "tunnel"),
        ("100::1", "reserved"),
    ],
)
def test_no_private_address_passes(address, words):
    assert words in refusal(ip_address(address))
    with pytest.raises(OutboundRefused, match=r"server\.outbound\.allow"):
        STRICT.check("somewhere.example", [address])


@pytest.mark.parametrize(
    "address",
    [
        "1.1.1.1", "8.8.8.8", "172.15.0.1", "172.32.0.1", "169.253.0.1", "100.63.0.1", "100.128.0.1", "223.255.255.255",
        "2606:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8", "64:ff9b::808:808",
    ],
)  # fmt: skip
def test_public_addresses_pass(address):
    assert refusal(ip_address(address)) is None
    STRICT.check("somewhere.example", [address])


def test_one_private_address_among_public_ones_is_enough_to_refuse():
    with pytest.raises(OutboundRefused, match=r"10\.0\.0\.1"):
        STRICT.check("somewhere.example", ["8.8.8.8", "10.0.0.1"])


@given(st.ip_addresses())
def test_everything_the_standard_library_calls_private_is_refused(address):
    if not address.is_global:
        assert refusal(address) is not None


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://017700000001/",
        "http://0/",
        "http://127.0.0.1./",
        "http://[::1]/",
        "http://[::ffff:7f00:1]/",
        "http://[0:0:0:0:0:ffff:127.0.0.1]/",
        "http://localhost/",
        "http://LOCALHOST./",
        "http://a.localhost/",
        "http://169.254.169.254/latest/meta-data/",
        "http://2852039166/latest/meta-data/",
        "http://[fd00:ec2::254]/",
        "http://example.org@127.0.0.1/",
        "http://example.org:80@127.0.0.1/",
        "http://user:pass%40word@127.0.0.1:8080/",
        "http://127。0。0。1/",
    ],
)
def test_an_address_that_is_plainly_private_is_refused_before_it_is_resolved(url):
    with pytest.raises(OutboundRefused):
        STRICT.check_host(read_address(url).host)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://example.org", "example.org"),
        ("HTTPS://EXAMPLE.org:443/", "example.org"),
        ("https://example.org./", "example.org"),
        ("https://127.0.0.1@example.org/", "example.org"),
        ("https://straße.example/", "xn--strae-oqa.example"),
        ("https://例え.テスト/", "xn--r8jz45g.xn--zckzah"),
        ("http://[2606:4700:0:0::1111]:8080/", "2606:4700::1111"),
        ("https://example.org?x=1", "example.org"),
        ("https://example.org#@127.0.0.1/", "example.org"),
        ("https://example.org/@127.0.0.1", "example.org"),
    ],
)
def test_the_host_is_the_one_that_is_connected_to(url, host):
    assert read_address(url).host == host
    STRICT.check_host(host)


@pytest.mark.parametrize(
    "url",
    [
        "",
        None,
        7,
        "example.org",
        "//example.org/",
        "ftp://example.org/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:6379/_FLUSHALL",
        "javascript:alert(1)",
        "unix:///var/run/docker.sock",
        "http://",
        "http:///path",
        "http://example.org:0/",
        "http://example.org:99999/",
        "http://example.org:80x/",
        "http://exa mple.org/",
        "http://example.org\\@127.0.0.1/",
        "http://example.org\t/",
        "http://example.org/\r\nHost: 127.0.0.1",
        "http://example.org\N{ZERO WIDTH SPACE}/",
        "http://127%2e0.0.1/",
        "http://%31%32%37.0.0.1/",
        "http://[fe80::1%25eth0]/",
        "http://[::1/",
        "http://[127.0.0.1]/",
        "http://a..b/",
        "http://-/",
        "http://①②⑦.⓪.⓪.①/",
        "http://" + "a" * 300 + "/",
        "http://example.org/" + "a" * 9000,
    ],
)
def test_what_is_no_plain_web_address_is_refused_without_being_shown(url):
    with pytest.raises(ValueError, match=r"^(must|has|names)") as error:
        read_address(url)
    assert "127" not in str(error.value)


def test_an_address_is_taken_apart_once():
    address = read_address("https://ann:s%3Acret@example.org:8443/päth?q=ä b".replace(" ", "%20"))
    assert (address.user, address.password, address.port) == ("ann", "s:cret", 8443)
    assert address.target == "/p%C3%A4th?q=%C3%A4%20b"
    assert address.shown == "https://example.org:8443/p%C3%A4th"


@pytest.mark.parametrize(
    ("entry", "host", "address"),
    [
        ("10.0.0.0/8", "a.example", "10.1.1.1"),
        ("10.0.0.5", "10.0.0.5", "10.0.0.5"),
        ("127.0.0.0/8", "a.example", "::ffff:127.0.0.1"),
        ("fd00::/8", "a.example", "fd00::7"),
        ("::1", "localhost", "::1"),
        ("wiki.internal", "wiki.internal", "10.9.9.9"),
        ("Wiki.Internal.", "wiki.internal", "10.9.9.9"),
        ("*.internal", "a.b.internal", "10.9.9.9"),
        ("169.254.169.254", "169.254.169.254", "169.254.169.254"),
    ],
)
def test_a_place_that_is_configured_may_be_reached(entry, host, address):
    OutboundPolicy((entry,)).check(host, [address])
    with pytest.raises(OutboundRefused):
        STRICT.check(host, [address])


@pytest.mark.parametrize(
    ("entry", "host", "address"),
    [
        ("10.0.0.5", "a.example", "10.0.0.6"),
        ("wiki.internal", "notwiki.internal", "10.9.9.9"),
        ("*.internal", "internal", "10.9.9.9"),
        ("*.internal", "internal.evil.example", "10.9.9.9"),
        ("10.0.0.0/8", "a.example", "169.254.169.254"),
    ],
)
def test_nothing_beside_it_may(entry, host, address):
    with pytest.raises(OutboundRefused):
        OutboundPolicy((entry,)).check(host, [address])


@pytest.mark.parametrize("entry", ["", "*", "10.0.0.0/33", "http://a.example", "a b", "0x7f.1", "2130706433"])
def test_an_entry_that_means_nothing_is_refused(entry):
    with pytest.raises(ValueError, match="must be an address"):
        read_allowed(entry)


def test_a_host_with_figures_in_it_is_no_address():
    assert literal_ip("1.example") is None
    assert literal_ip("1.2.3.4.5") is None
    assert issubclass(OutboundRefused, NotAllowed)
