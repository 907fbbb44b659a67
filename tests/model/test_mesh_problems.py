import pytest

from scout.base.refusal import Diagnostic
from scout.model.problems.mesh import (
    AgentBusy,
    CertificateMismatch,
    InvitationInvalid,
    MeshLoginRefused,
    MeshNotInstalled,
    MeshUnreachable,
    MoveRefused,
    ServerFailed,
    ServerMissing,
    ServerTooOld,
)

URL = "tls://10.0.0.1:4222"


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (
            MeshNotInstalled(package="nats", command="pip install x"),
            "the mesh needs the package 'nats', which is not installed: run `pip install x`",
        ),
        (ServerMissing(command="pip install x"), "nats-server was not found: run `pip install x`"),
        (
            ServerMissing(command="pip install x", looked=("/a", "PATH")),
            "nats-server was not found (looked in /a, PATH): run `pip install x`",
        ),
        (
            ServerTooOld(where=URL, version="2.9.10", needed="2.11"),
            f"the NATS server at {URL} has version 2.9.10; the mesh needs 2.11 or newer",
        ),
        (ServerFailed(problem="does not run"), "the NATS server does not run"),
        (ServerFailed(problem="ended", lines=("a", "b")), "the NATS server ended: b"),
        (
            MeshUnreachable(url=URL, reason="timeout"),
            f"the mesh server at {URL} cannot be reached: timeout",
        ),
        (
            MeshLoginRefused(url=URL),
            f"the mesh server at {URL} does not accept the login of this node",
        ),
        (
            MeshLoginRefused(url=URL, reason="expired"),
            f"the mesh server at {URL} does not accept the login of this node: expired",
        ),
        (
            CertificateMismatch(url=URL, expected="a" * 64, found="b" * 64),
            f"the server at {URL} shows the certificate bbbbbbbbbbbbbbbb…, expected aaaaaaaaaaaaaaaa…",
        ),
        (AgentBusy(address="@arc", reason="it flies"), "@arc cannot move now: it flies"),
        (
            MoveRefused(address="@arc", node="two", code_there="name_taken", reason="the name is taken"),
            "node two did not take @arc: the name is taken",
        ),
        (InvitationInvalid(problem="it was used"), "this invitation cannot be used: it was used"),
    ],
)
def test_the_message_is_made_from_the_facts(problem: Diagnostic, message: str) -> None:
    assert problem.message == message
