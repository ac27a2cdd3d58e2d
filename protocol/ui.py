"""Extension UI: what an extension asks of the client's user, or shows, while it runs.

One frame for each `method`. Those with an answer (`select`, `confirm`, `input`, `editor` and three of OAuth) wait for
an `extension_ui_response` with their `id`, or for their `timeout` in milliseconds; the others want none. Of the frames
of an OAuth login only `provider` and `login_id` are known to be there.

Source: `spec/rpc.md` 2.7; the contract names the frames without showing them.
"""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType


class _Request(Struct, kw_only=True, rename="camel", tag_field="method"):
    type: Literal["extension_ui_request"] = "extension_ui_request"
    id: str


# ---- dialogs: the extension waits for the answer -----------------------------------------------------------------


class UiSelect(_Request, tag="select"):
    """The user is to choose one of `options`; the answer's `value` is the chosen one."""

    title: str
    options: list[str]
    timeout: float | UnsetType = UNSET


class UiConfirm(_Request, tag="confirm"):
    """A question of yes or no; the answer has `confirmed`."""

    title: str
    message: str
    timeout: float | UnsetType = UNSET


class UiInput(_Request, tag="input"):
    """The user is to type one line; the answer has `value`."""

    title: str
    placeholder: str | UnsetType = UNSET
    timeout: float | UnsetType = UNSET


class UiEditor(_Request, tag="editor"):
    """The user is to write or change a text; the answer has `value`. It has no time limit."""

    title: str
    prefill: str | UnsetType = UNSET


# ---- what is only shown ------------------------------------------------------------------------------------------


class UiNotify(_Request, tag="notify"):
    """A note for the user; no answer."""

    message: str
    notify_type: str | UnsetType = UNSET


class UiSetStatus(_Request, tag="setStatus"):
    """The status text under `status_key`; without `status_text` it is taken away."""

    status_key: str
    status_text: str | UnsetType = UNSET


class UiSetWidget(_Request, tag="setWidget"):
    """The lines of the widget `widget_key`; without `widget_lines` it is taken away."""

    widget_key: str
    widget_lines: list[str] | UnsetType = UNSET
    widget_placement: str | UnsetType = UNSET


class UiSetTitle(_Request, tag="setTitle"):
    """The title of the client's window."""

    title: str


class UiSetEditorText(_Request, tag="set_editor_text"):
    """What the client's input field shall hold."""

    text: str


# ---- OAuth logins ------------------------------------------------------------------------------------------------


class _OAuth(_Request):
    provider: str
    login_id: str


class OAuthAuth(_OAuth, tag="oauth_auth"):
    """The page on which the user logs in; no answer."""


class OAuthDeviceCode(_OAuth, tag="oauth_device_code"):
    """The code that the user enters elsewhere; no answer."""


class OAuthProgress(_OAuth, tag="oauth_progress"):
    """How far the login is; no answer."""


class OAuthInfo(_OAuth, tag="oauth_info"):
    """A note about the login; no answer."""


class OAuthManualCodeCancel(_OAuth, tag="oauth_manual_code_cancel"):
    """A code is no longer asked for; no answer."""


class OAuthPrompt(_OAuth, tag="oauth_prompt"):
    """The login needs a text from the user; the answer has `value`."""


class OAuthSelect(_OAuth, tag="oauth_select"):
    """The login needs a choice of the user; the answer has `value`."""


class OAuthManualCode(_OAuth, tag="oauth_manual_code"):
    """The login needs a code that the user has; the answer has `value`."""


ExtensionUiRequest = (
    UiSelect
    | UiConfirm
    | UiInput
    | UiEditor
    | UiNotify
    | UiSetStatus
    | UiSetWidget
    | UiSetTitle
    | UiSetEditorText
    | OAuthAuth
    | OAuthDeviceCode
    | OAuthProgress
    | OAuthInfo
    | OAuthManualCodeCancel
    | OAuthPrompt
    | OAuthSelect
    | OAuthManualCode
)
