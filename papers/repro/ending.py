"""A signal ends the program and leaves no simulated run and no partial file behind.

    sys.exit(ending.by_signal(main))     # SIGHUP, SIGINT and SIGTERM raise Ended in the main thread
    with ending.put_off():               # in the main thread: delays signals to its end
        write_files()

    ending.check()                       # raises Ended if a signal came before
    ending.came()                        # has one come? for loops within put_off()

An import may swallow Ended, so imports run under put_off().
"""

import contextlib
import os
import signal
import threading

SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


class Ended(BaseException):
    """Not an Exception: nothing but a clean-up may catch it on its way."""


class _State:
    put_off = False
    came = None


def _take(number, _):
    if not came():  # a second signal would interrupt the clean-up
        _State.came = number
        if not _State.put_off:
            raise Ended


def came():
    return _State.came is not None


def check():
    """Raises Ended if a signal came. Signals interrupt the main thread alone."""
    if came() and threading.current_thread() is threading.main_thread():
        raise Ended


@contextlib.contextmanager
def put_off():
    if threading.current_thread() is not threading.main_thread():
        yield  # signals interrupt the main thread alone
        return
    _State.put_off = True
    try:
        yield
    finally:
        _State.put_off = False
    check()


def by_signal(main):
    """Calls it; dies by the signal that ended it, as a shell and `elidex` expect of a program."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, _take)
    status = None
    with contextlib.suppress(Ended):
        status = main()
    if came():
        signal.signal(_State.came, signal.SIG_DFL)
        os.kill(os.getpid(), _State.came)
    return status
