"""Addresses of services: which pass, and why the others do not."""

from __future__ import annotations

import pytest

from clawmark.config.urls import problem_with


@pytest.mark.parametrize(
    "url",
    [
        "https://api.openai.com/v1",
        "http://127.0.0.1:11434",
        "http://localhost:8080/v1/",
        "http://[::1]:11434/api",
        "http://192.168.1.20:11434",
        "http://gpu-box.local/v1?api-version=2",
        "HTTPS://Example.COM:443/",
        "http://my_host/v1",
        "https://node-10-1-2-3.example.com/v1",
        "https://example.com/v1?monkey=1&deployment=key",
    ],
)
def test_ordinary_addresses_pass(url: str) -> None:
    assert problem_with(url) == ""


@pytest.mark.parametrize(
    ("url", "part"),
    [
        ("ftp://example.com", "http://"),
        ("", "http://"),
        ("http://", "no host"),
        ("http://user:pass@example.com", "user name"),
        ("http://example.com:99999/", "not a port"),
        ("http://exa\nmple.com/", "control"),
        ("http://①②⑦.0.0.1/", "ASCII"),
        ("http://169.254.169.254/latest", "link-local"),
        ("http://169.254.169.254.nip.io/", "link-local"),
        ("http://a.169-254-169-254.sslip.io/", "link-local"),
        ("http://[fe80::1]/", "link-local"),
        ("http://[::ffff:169.254.169.254]/", "link-local"),
        ("http://[fd00:ec2::254]/", "credentials"),
        ("http://metadata.google.internal./", "credentials"),
        ("http://2852039166/", "not an address"),
        ("http://0xa9fea9fe/", "not an address"),
        ("http://0251.0376.0251.0376/", "not an address"),
        ("http://0.0.0.0/", "unspecified"),
        ("http://0.1.2.3/", "start with 0"),
        ("http://224.0.0.1/", "multicast"),
        ("http://" + "a" * 300 + "/", "host name"),
        ("http://127.0.0.1#@example.com/", "no #"),
        ("http://127.0.0.1\\@example.com/", "backslash"),
        ("http://-bad-.com/", "host name"),
        ("https://example.com/v1?key=AIzaSy", "no key"),
        ("https://example.com/v1?a=b&api_key=x", "no key"),
        ("https://example.com/v1?X-Api-Key=x", "no key"),
        ("https://example.com?subscription-key=x", "no key"),
        ("https://example.com/v1?access_token=x", "no key"),
    ],
)
def test_traps_are_refused_with_a_reason(url: str, part: str) -> None:
    assert part in problem_with(url)
