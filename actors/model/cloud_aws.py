"""AWS: which key pair signs, and for which region.

Owns what botocore has found for a profile, so that a role is not assumed anew at each request. Blocking, for pump
threads; botocore asks SSO, STS and metadata servers in its own way and time. Errors name a profile, never a key.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from actors.model.cloud_packages import imported
from actors.model.transport_contract import TransportError

_HOST = re.compile(r"https?://(?:[^/]*\.)?bedrock-runtime(?:-fips)?\.([a-z]{2}[a-z0-9-]+\d)\.", re.IGNORECASE)


class KeyPair(NamedTuple):
    access: str
    secret: str
    token: str | None

    def __repr__(self) -> str:
        return "KeyPair(<set>)"


class AwsCredentials:
    """Used from many pumps at once: each entry is set whole, and botocore guards the renewal inside it."""

    def __init__(self) -> None:
        self._found: dict[tuple[str | None, ...], Any] = {}

    def key_pair(self, variables: dict[str, str]) -> KeyPair:
        """From the two variables, else from the profile or whatever botocore finds. Raises TransportError."""
        access, secret = variables.get("AWS_ACCESS_KEY_ID"), variables.get("AWS_SECRET_ACCESS_KEY")
        if access and secret:
            return KeyPair(access, secret, variables.get("AWS_SESSION_TOKEN"))
        try:
            frozen = self._credentials(variables).get_frozen_credentials()
        except TransportError:
            raise
        except Exception as error:  # botocore's own; its texts may quote what it read
            raise TransportError(_told(error, variables)) from None
        return KeyPair(frozen.access_key, frozen.secret_key, frozen.token)

    def forget(self, variables: dict[str, str]) -> None:
        """AWS refused what was found: the next request looks again, since files may have changed."""
        self._found.pop(_key(variables), None)

    def _credentials(self, variables: dict[str, str]) -> Any:
        key = _key(variables)
        if (known := self._found.get(key)) is not None:
            return known
        credentials = _session(variables).get_credentials()
        if credentials is None:
            raise TransportError(
                "No AWS credentials found for Bedrock: set AWS_PROFILE, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY,"
                " or AWS_BEARER_TOKEN_BEDROCK"
            )
        return self._found.setdefault(key, credentials)


def region_of(base_url: str, variables: dict[str, str]) -> str:
    """The region that the address names, since the signature has to be for it; else the variables', else the
    profile's. Raises TransportError."""
    named = _HOST.match(base_url)
    region = named[1] if named else variables.get("AWS_REGION") or variables.get("AWS_DEFAULT_REGION")
    if not region:
        try:
            region = _session(variables).get_config_variable("region")
        except TransportError:
            raise
        except Exception as error:
            raise TransportError(_told(error, variables)) from None
    if not region:
        raise TransportError("Bedrock needs a region: set AWS_REGION, or give the AWS profile one")
    return str(region)


def _session(variables: dict[str, str]) -> Any:
    session = imported("botocore.session", "bedrock", "Bedrock").Session(profile=variables.get("AWS_PROFILE"))
    for name, variable in (("credentials_file", "AWS_SHARED_CREDENTIALS_FILE"), ("config_file", "AWS_CONFIG_FILE")):
        if variable in variables:
            session.set_config_variable(name, variables[variable])
    return session


def _key(variables: dict[str, str]) -> tuple[str | None, ...]:
    return tuple(map(variables.get, ("AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE")))


def _told(error: Exception, variables: dict[str, str]) -> str:
    profile = variables.get("AWS_PROFILE", "default")[:80]
    return f"The AWS credentials of profile {profile!r} cannot be used ({type(error).__name__})"
