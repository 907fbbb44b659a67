"""Scout in the daemon and Scout over the wire are the same to a caller."""

import inspect

from scout import Scout as RemoteScout
from scout.broker.local import LocalScout
from scout.protocol.scout import Admission, Credential, Scout


def test_both_views_of_scout_have_the_methods_of_the_protocol() -> None:
    methods = [name for name, _ in inspect.getmembers(Scout, inspect.isfunction) if not name.startswith("_")]
    assert methods == ["call", "watch"]
    for view in (LocalScout, RemoteScout):
        assert all(callable(getattr(view, name)) for name in methods)
    assert callable(LocalScout.credential_ended)
    assert hasattr(Admission, "credential_ended")


def test_a_credential_is_nobody_unless_it_names_somebody() -> None:
    assert Credential() == Credential(secret=None, act_as=None, directory=None)
