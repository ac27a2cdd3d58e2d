"""`--mode json` as a script meets it: the whole program, one run, events on stdout."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from conformance.model_server import ModelServer, error, gate, text, tool
from conformance.model_server import raw as raw_reply
from tests_e2e_home import Home, ROOT, program
