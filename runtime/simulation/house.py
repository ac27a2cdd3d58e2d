"""One seed, played: the house that `wired` has put together runs from its first mail to its last.

It keeps what the invariants look at: the bytes on stdout, the lines on stderr, the mail.
"""

from __future__ import annotations

from runtime.simulation.wired import Wired


class House(Wired):
    """One course from the first mail to the last."""

    def play(self) -> bool:
        """Whether Root came to its end. What is still under way then goes on to its end as well, unseen."""
        is_over = self._run_to_the_end()
        self.exit_code = self.root.exit_code
        self.gave_up = any(line.startswith("gave up after") for line in self.stderr)
        self.ended_at = len(self.scheduler.trace)
        self.locked = self.disk.locked
        if not self.is_cut_off:
            self.scheduler.run(lambda: False)
        return is_over

    def _run_to_the_end(self) -> bool:
        while not self.scheduler.run(self._is_over):
            if not (self.sink.read_on() or self._wake() or self.alarm.ring()):
                return False
        return True

    def _wake(self) -> bool:
        """The client and the inspectors."""
        return self.client.wake() | self.way_in.wake()

    @property
    def is_cut_off(self) -> bool:
        """A second signal ends the program where it stands, and so does its deadline."""
        return self.client.signalled > 1 or self.gave_up

    @property
    def is_heard_out(self) -> bool:
        """Whether the client got to read all that the program had to say."""
        return not (self.sink.broken or self.sink.stopped or self.is_cut_off)
