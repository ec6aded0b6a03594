"""Signals from another thread, as from a user who presses Ctrl-C until it is noticed."""

import contextlib
import os
import queue
import sys
import threading
import time
from pathlib import Path


@contextlib.contextmanager
def pressed(number, seconds):
    """Sends this process the signal ``number`` after ``seconds``.

    Python prints and swallows what a signal's handler raises inside a weakref's callback or a ``__del__``, and goes on:
    then the signal is sent again.
    """
    swallowed = queue.SimpleQueue()

    def press():
        time.sleep(seconds)
        os.kill(os.getpid(), number)
        while swallowed.get():
            time.sleep(0.1)
            os.kill(os.getpid(), number)

    def hook(unraisable):
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            swallowed.put(True)
        else:
            previous(unraisable)

    thread = threading.Thread(target=press)
    previous, sys.unraisablehook = sys.unraisablehook, hook
    try:
        thread.start()
        yield
    finally:
        sys.unraisablehook = previous
        swallowed.put(False)
        thread.join()


@contextlib.contextmanager
def interrupted_at(moment, *modules):
    """Raises KeyboardInterrupt at a moment of the work in these modules, counted from 0, as a signal handler can:
    when a function begins, and when a call of one that is written in C has returned.

    Yields a list that is empty if the work was done before.
    """
    files = {module.__file__ for module in modules}
    moments = [0]
    raised = []

    def watch(frame, event, _):
        if event not in ("call", "c_return") or frame.f_code.co_filename not in files or raised:
            return
        moments[0] += 1
        if moments[0] > moment:
            raised.append(f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}")
            raise KeyboardInterrupt

    sys.setprofile(watch)
    try:
        yield raised
    except KeyboardInterrupt:
        assert raised
    finally:
        sys.setprofile(None)
