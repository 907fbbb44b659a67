from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from scout.model.mesh.join import JoinAnswer, JoinRequest
from scout.policy.mesh.join_proof import (
    hash_secret,
    is_founder_proved,
    is_joiner_proved,
    prove_founder,
    prove_joiner,
)

REQUEST = JoinRequest(
    invitation_id="inv",
    node_id="node",
    name="mini",
    version="1",
    public_key="aa",
    login_key="UA",
    login_proof="bb",
    nonce="cc",
)
ANSWER = JoinAnswer(member="{}", signature="dd", mesh_id="mesh", nonce="ee")


@dataclass
class Side:
    hashed: str = hash_secret("secret")
    mesh: str = "mesh"
    founder: str = "ff"

    def request(self) -> JoinRequest:
        return replace(REQUEST, proof=prove_joiner(self.hashed, self.mesh, self.founder, REQUEST))

    def answer(self) -> JoinAnswer:
        proof = prove_founder(self.hashed, self.mesh, self.founder, self.request(), ANSWER)
        return replace(ANSWER, proof=proof)

    def takes_request(self, request: JoinRequest) -> bool:
        return is_joiner_proved(self.hashed, self.mesh, self.founder, request)

    def takes_answer(self, answer: JoinAnswer) -> bool:
        return is_founder_proved(self.hashed, self.mesh, self.founder, self.request(), answer)


def test_both_sides_prove_the_secret() -> None:
    assert Side().takes_request(Side().request())
    assert Side().takes_answer(Side().answer())


OTHERS = (Side(hashed=hash_secret("guess")), Side(mesh="other"), Side(founder="00"))


@pytest.mark.parametrize("other", OTHERS)
def test_another_secret_mesh_or_founder_proves_nothing(other: Side) -> None:
    assert not Side().takes_request(other.request())
    assert not Side().takes_answer(other.answer())


@pytest.mark.parametrize("field", REQUEST.__struct_fields__)
def test_no_field_of_a_request_can_be_altered(field: str) -> None:
    assert not Side().takes_request(replace(Side().request(), **{field: "altered"}))


@pytest.mark.parametrize("field", ["member", "signature", "mesh_id", "nonce", "proof"])
@pytest.mark.parametrize("value", ["altered", None])
def test_no_field_of_an_answer_can_be_altered(field: str, value: str | None) -> None:
    assert not Side().takes_answer(replace(Side().answer(), **{field: value}))


def test_the_proof_of_one_side_is_not_the_proof_of_the_other() -> None:
    assert not Side().takes_answer(replace(Side().answer(), proof=Side().request().proof))


def test_the_hash_is_not_the_secret() -> None:
    assert "secret" not in hash_secret("secret")
    assert len(bytes.fromhex(hash_secret("secret"))) == 32
