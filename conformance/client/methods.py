"""The methods of both faces that send one command and give its result: each function of `calls`, once.

A `Method` is a descriptor. On a blocking face it is a function that gives the result, on an asyncio face one that gives
an awaitable of it; type checkers see the parameters and the result of each.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from conformance.client import calls
from conformance.client.calls import Call

P = ParamSpec("P")
T = TypeVar("T")


class BlockingFace(Protocol):
    """Gives the result of a call."""

    def call(self, call: Call[T], /) -> T: ...


class AsyncFace(Protocol):
    """Gives an awaitable of the result of a call."""

    async def call(self, call: Call[T], /) -> T: ...


class Method(Generic[P, T]):
    def __init__(self, make: Callable[P, Call[T]]) -> None:
        self._make = make
        functools.update_wrapper(self, make)  # type: ignore[arg-type]

    @overload
    def __get__(self, face: None, owner: Any) -> Self: ...
    @overload
    def __get__(self, face: BlockingFace, owner: Any) -> Callable[P, T]: ...
    @overload
    def __get__(self, face: AsyncFace, owner: Any) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, face: Any, owner: Any) -> Any:
        if face is None:
            return self

        @functools.wraps(self._make)
        def method(*args: P.args, **kwargs: P.kwargs) -> Any:
            return face.call(self._make(*args, **kwargs))

        return method


class Methods:
    """One method for each command, save `prompt`, `bash` and `user_bash`, of which the faces make more."""

    steer = Method(calls.steer)
    follow_up = Method(calls.follow_up)
    abort = Method(calls.abort)
    clear_queue = Method(calls.clear_queue)
    pause_queued_messages = Method(calls.pause_queued_messages)
    resume_queued_messages = Method(calls.resume_queued_messages)
    set_steering_mode = Method(calls.set_steering_mode)
    set_follow_up_mode = Method(calls.set_follow_up_mode)
    get_state = Method(calls.get_state)
    get_messages = Method(calls.get_messages)
    get_session_stats = Method(calls.get_session_stats)
    get_last_assistant_text = Method(calls.get_last_assistant_text)
    get_entries = Method(calls.get_entries)
    get_tree = Method(calls.get_tree)
    get_fork_messages = Method(calls.get_fork_messages)
    set_model = Method(calls.set_model)
    cycle_model = Method(calls.cycle_model)
    get_available_models = Method(calls.get_available_models)
    refresh_models = Method(calls.refresh_models)
    login_provider = Method(calls.login_provider)
    save_provider_credential = Method(calls.save_provider_credential)
    cancel_login_provider = Method(calls.cancel_login_provider)
    logout_provider = Method(calls.logout_provider)
    set_thinking_level = Method(calls.set_thinking_level)
    cycle_thinking_level = Method(calls.cycle_thinking_level)
    get_available_thinking_levels = Method(calls.get_available_thinking_levels)
    compact = Method(calls.compact)
    abort_compaction = Method(calls.abort_compaction)
    set_auto_compaction = Method(calls.set_auto_compaction)
    set_auto_retry = Method(calls.set_auto_retry)
    abort_retry = Method(calls.abort_retry)
    abort_bash = Method(calls.abort_bash)
    get_tasks = Method(calls.get_tasks)
    get_task = Method(calls.get_task)
    cancel_task = Method(calls.cancel_task)
    send_task_input = Method(calls.send_task_input)
    resize_task = Method(calls.resize_task)
    wait_task = Method(calls.wait_task)
    set_task_subscription = Method(calls.set_task_subscription)
    new_session = Method(calls.new_session)
    switch_session = Method(calls.switch_session)
    import_session = Method(calls.import_session)
    fork = Method(calls.fork)
    clone = Method(calls.clone)
    set_session_name = Method(calls.set_session_name)
    navigate_tree = Method(calls.navigate_tree)
    set_label = Method(calls.set_label)
    export_html = Method(calls.export_html)
    reload = Method(calls.reload)
    get_commands = Method(calls.get_commands)
    get_command_completions = Method(calls.get_command_completions)
    get_shortcuts = Method(calls.get_shortcuts)
    invoke_shortcut = Method(calls.invoke_shortcut)
