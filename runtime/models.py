"""The models that a session may choose from: the built-in catalogue under the user's `models.json`.

Owns the merge and the order. Promises that one bad provider or model entry costs one line (file, entry, field, value,
allowed) and nothing else, and that header values, which may be secrets, stay out of `Model` and so off the wire.
Source: sessions 4.2 and 4.5.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from actors.catalog_data import SCRIPTED, built_in_models
from protocol.model import Model, ModelCost
from runtime.config_values import decode_document, is_unicode, kind_of, shown
from runtime.model_fields import MODEL_FIELDS, PROVIDER_FIELDS, BadField, merged, read_fields
from runtime.regular_file import read_regular
from runtime.unknown_keys import told_unknown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

FILE = "models.json"
TOP_KEYS = ("providers", "$schema")
CONTEXT_WINDOW = 128000
MAX_TOKENS = 16384

# Compiled on first use: a pattern costs 0.2 to 0.4 ms of every start.
_COMMENT = r'(?s)("(?:[^"\\]|\\.)*")|//[^\n]*'
_TRAILING_COMMA = r'(?s)("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])'


class ProviderConfig(Struct, frozen=True):
    """How `models.json` reaches one provider. The values of `api_key`, `headers` and `model_headers` (by model id) are
    config values, to be resolved at each request; none of them is in the repr."""

    id: str
    name: str
    base_url: str | None = None
    api_key: str | None = None
    auth_header: bool = False
    headers: dict[str, str] = {}
    model_headers: dict[str, dict[str, str]] = {}

    def __repr__(self) -> str:
        return f"ProviderConfig(id={self.id!r}, base_url={self.base_url!r}, auth_header={self.auth_header})"


class LoadedModels(Struct, frozen=True):
    """`models` in catalogue order, available or not; `providers` are those that models.json speaks of. `faults` holds,
    for each warning, the provider that it is about, or the file. `whole` tells that the file could be read."""

    models: list[Model]
    providers: dict[str, ProviderConfig]
    warnings: list[str]
    faults: tuple[tuple[str, str], ...] = ()
    whole: bool = True


def load_models(agent_dir: str, *, scripted: bool) -> LoadedModels:
    """Read `<agent_dir>/models.json`. `scripted` says that a flag or a setting names the scripted model; without it,
    that model is there only when the file itself names it. Its warnings name the path, its faults the file alone: those
    go to clients."""
    path = os.path.join(agent_dir, FILE)
    loaded = _loaded(path, scripted)
    return replace(loaded, warnings=[warning.replace(FILE, path, 1) for warning in loaded.warnings])


def _loaded(path: str, scripted: bool) -> LoadedModels:
    try:
        data = read_regular(path)
    except (FileNotFoundError, NotADirectoryError):
        data = b"{}"
    except OSError as error:
        return _unread(f"Failed to load {FILE}: {error.strerror or error}", scripted)
    return read_models(data, scripted=scripted)


def read_models(data: bytes, *, scripted: bool) -> LoadedModels:
    """The same for the bytes of a models.json; a file that is no JSON leaves the built-in models."""
    try:
        document = decode_document(data)
    except ValueError:
        try:
            document = decode_document(_as_json(data))
        except ValueError as error:
            return _unread(f"Failed to parse {FILE}: {error}", scripted)
    return merge_models(document, scripted=scripted)


def _unread(warning: str, scripted: bool) -> LoadedModels:
    """The built-in models alone."""
    return replace(merge_models({}, scripted=scripted), warnings=[warning], faults=((FILE, warning),), whole=False)


def merge_models(document: Any, *, scripted: bool) -> LoadedModels:
    """Lay a decoded models.json over the built-in catalogue."""
    warnings: list[str] = []
    entries = _provider_entries(document, warnings)
    faults = [(FILE, warning) for warning in warnings]
    catalogue: dict[str, dict[str, Model]] = {}
    for model in built_in_models():
        catalogue.setdefault(model.provider, {})[model.id] = model
    if scripted or SCRIPTED.provider in entries:
        catalogue[SCRIPTED.provider] = {SCRIPTED.id: SCRIPTED}
    providers: dict[str, ProviderConfig] = {}
    for provider_id, entry in entries.items():
        try:
            merger = _Provider(provider_id, entry, catalogue.get(provider_id, {}), warnings)
            catalogue[provider_id] = merger.models
            providers[provider_id] = merger.config
        except BadField as error:
            warnings.append(f"{FILE}: {error}")
        about = provider_id if is_unicode(provider_id) else FILE
        faults += [(about, warning) for warning in warnings[len(faults) :]]
    models = [model for models in catalogue.values() for model in models.values()]
    return LoadedModels(models, providers, warnings, tuple(faults))


def _as_json(data: bytes) -> bytes:
    """Without `//` comments and trailing commas, lines kept so that an error still points to the right one."""
    text = data.decode("utf-8", "replace")
    text = re.sub(_COMMENT, lambda match: match[1] or "", text)
    return re.sub(_TRAILING_COMMA, lambda match: match[1] or " ", text).encode()


def _provider_entries(document: Any, warnings: list[str]) -> dict[str, Any]:
    if not isinstance(document, dict):
        warnings.append(f"Invalid {FILE} schema: the file must hold an object, not {kind_of(document)}")
        return {}
    warnings += filter(None, [told_unknown(FILE, document, TOP_KEYS)])
    entries = document.get("providers")
    if entries is None:
        return {}
    if not isinstance(entries, dict):
        warnings.append(f'Invalid {FILE} schema: "providers" must be an object, not {kind_of(entries)}')
        return {}
    return entries


class _Provider:
    """One entry of `providers` laid over the models that the provider has built in."""

    def __init__(self, provider_id: str, entry: Any, base: dict[str, Model], warnings: list[str]) -> None:
        self.id = provider_id
        self._warnings = warnings
        self._label = f"provider {shown(provider_id)}"
        if not is_unicode(provider_id):
            raise BadField(f"{self._label}: its name is no Unicode text")
        self._fields = self._read(entry, PROVIDER_FIELDS, self._label)
        self._tell_unknown(self._label, entry, (*PROVIDER_FIELDS, "oauth"))
        self._refuse_idle_entry()
        self._first = next(iter(base.values()), None)
        self._model_headers: dict[str, dict[str, str]] = {}
        self.models = {model.id: self._overlaid(model) for model in base.values()}
        self._add_models(self._fields.get("models", ()))
        self._override(self._fields.get("model_overrides", {}))
        self.config = self._config()

    def _read(self, entry: Any, fields: Any, label: str, required: tuple[str, ...] = ()) -> dict[str, Any]:
        notes: list[str] = []
        said = read_fields(entry, fields, label, notes, required)
        self._warnings += [f"{FILE}: {note}" for note in notes]
        return said

    def _tell_unknown(self, label: str, entry: dict[str, Any], known: Collection[str]) -> None:
        self._warnings += filter(None, [told_unknown(f"{FILE}: {label}", entry, known)])

    def _refuse_idle_entry(self) -> None:
        said = self._fields
        if not (said.get("base_url") or said.get("models") or said.get("model_overrides")) and not (
            "headers" in said or "compat" in said
        ):
            raise BadField(
                f'Provider {self.id}: must specify "baseUrl", "headers", "compat", "modelOverrides", or "models".'
            )

    def _overlaid(self, model: Model) -> Model:
        changes: dict[str, Any] = {}
        if "base_url" in self._fields:
            changes["base_url"] = self._fields["base_url"]
        if "compat" in self._fields:
            changes["compat"] = merged(model.compat or {}, self._fields["compat"])
        return replace(model, **changes) if changes else model

    def _add_models(self, entries: Iterable[Any]) -> None:
        for position, entry in enumerate(entries):
            try:
                model = self._new_model(entry, position)
            except BadField as error:
                self._warnings.append(f"{FILE}: {error}")
                continue
            self.models[model.id] = model

    def _new_model(self, entry: Any, position: int) -> Model:
        model_id = entry.get("id") if isinstance(entry, dict) else None
        which = f"model {shown(model_id)}" if isinstance(model_id, str) else f"models[{position}]"
        label = f"{self._label}, {which}"
        said = self._read(entry, MODEL_FIELDS, label, required=("id",))
        self._tell_unknown(label, entry, MODEL_FIELDS)
        self._take_headers(said["id"], said)
        if said.get("cost"):
            _require_whole_cost(said["cost"], label)
        said["cost"] = ModelCost(**said.get("cost", {}))
        compat = merged(self._fields.get("compat", {}), said.get("compat", {}))
        defaults = {
            "name": said["id"],
            "provider": self.id,
            "reasoning": False,
            "input": ("text",),
            "context_window": CONTEXT_WINDOW,
            "max_tokens": MAX_TOKENS,
            **self._endpoint(said, label),
        }
        return Model(**{**defaults, **said, **({"compat": compat} if compat else {})})

    def _endpoint(self, said: dict[str, Any], label: str) -> dict[str, str]:
        """`api` and `baseUrl` of the model, else of the provider, else of the provider's first known model."""
        first = self._first
        api = said.get("api") or self._fields.get("api") or (first.api if first else None)
        if api is None:
            raise BadField(f'{label}: no "api" specified, neither for the model nor for its provider')
        base_url = said.get("base_url") or self._fields.get("base_url") or (first.base_url if first else None)
        if base_url is None and api != SCRIPTED.api:
            raise BadField(f'{label}: "baseUrl" is required, for the model or for its provider')
        return {"api": api, "base_url": base_url or ""}

    def _override(self, overrides: dict[str, Any]) -> None:
        """The top layer: it also changes models that the same entry defines. Unknown ids are ignored."""
        for model_id, entry in overrides.items():
            if model_id not in self.models:
                continue
            try:
                said = self._read(entry, MODEL_FIELDS, f"{self._label}, modelOverrides {shown(model_id)}")
            except BadField as error:
                self._warnings.append(f"{FILE}: {error}")
                continue
            self._tell_unknown(f"{self._label}, modelOverrides {shown(model_id)}", entry, MODEL_FIELDS)
            said.pop("id", None)
            self._take_headers(model_id, said)
            self.models[model_id] = _overridden(self.models[model_id], said)

    def _take_headers(self, model_id: str, said: dict[str, Any]) -> None:
        if headers := said.pop("headers", None):
            self._model_headers[model_id] = {**self._model_headers.get(model_id, {}), **headers}

    def _config(self) -> ProviderConfig:
        said = self._fields
        return ProviderConfig(
            id=self.id,
            name=said.get("name", self.id),
            base_url=said.get("base_url"),
            api_key=said.get("api_key"),
            auth_header=said.get("auth_header", False),
            headers=said.get("headers", {}),
            model_headers=self._model_headers,
        )


def _require_whole_cost(cost: dict[str, Any], label: str) -> None:
    names = {"input": "input", "output": "output", "cache_read": "cacheRead", "cache_write": "cacheWrite"}
    missing = [key for name, key in names.items() if name not in cost]
    if missing:
        raise BadField(f"{label}: cost.{missing[0]} is missing; all of {', '.join(names.values())} are needed")


def _overridden(model: Model, said: dict[str, Any]) -> Model:
    """Scalars replace; maps merge key by key; prices may be some of the four, tiers replace whole."""
    changes = dict(said)
    if "cost" in said:
        changes["cost"] = replace(model.cost, **said["cost"])
    for name in ("thinking_level_map", "sampling_params", "compat"):
        if name in said:
            changes[name] = merged(getattr(model, name) or {}, said[name])
    return replace(model, **changes)
