"""Envelopes as text: what is signed is what is read, and an unknown kind is noticed and not guessed."""

import pytest
from msgspec.structs import replace

from scout.base.codec import decode, encode
from scout.base.refusal import Refused
from scout.model.mesh.envelope import (
    BUNDLE_SIGNED_AS,
    SIGNED_AS,
    CancelPayload,
    Envelope,
    EnvelopeHeader,
    MessagePayload,
    SignedBundle,
    SignedEnvelope,
    build_bundle,
    build_signed_bytes,
    read_header,
    read_headers,
    read_kind,
    read_parcel,
    read_payload,
)
from tests.model.samples import BOB, T0, a_message, ident


def an_envelope() -> Envelope:
    return Envelope(
        id=ident("env"),
        mesh="mesh_1",
        from_node=ident("nod", 1),
        to_node=ident("nod", 2),
        sent_at=T0,
        lives=60.0,
        payload=MessagePayload(message=a_message(), to=BOB, wake=True),
    )


def test_the_signed_bytes_are_the_text_that_is_sent() -> None:
    envelope = an_envelope()
    body, signed = build_signed_bytes(envelope)
    sent = decode(encode(SignedEnvelope(body=body, signature="00")), SignedEnvelope)
    assert sent.signed_bytes == signed == SIGNED_AS + body.encode()
    header = read_header(sent)
    assert (header.id, header.sent_at, read_kind(header)) == (envelope.id, T0, "message")
    assert read_payload(header) == envelope.payload
    assert decode(body, Envelope) == envelope


def test_unknown_fields_are_left_out_and_unknown_kinds_are_refused() -> None:
    body, _ = build_signed_bytes(an_envelope())
    newer = body.replace('"lives":', '"colour":"red","lives":')
    assert read_payload(read_header(SignedEnvelope(body=newer, signature=""))) == an_envelope().payload
    other = read_header(SignedEnvelope(body=body.replace('"kind":"message"', '"kind":"song"'), signature=""))
    assert read_kind(other) == "song"
    with pytest.raises(Refused):
        read_payload(other)


def test_text_that_is_no_envelope_is_refused() -> None:
    for body in ("", "[]", '{"id": 1}'):
        with pytest.raises(Refused):
            read_header(SignedEnvelope(body=body, signature=""))


def test_a_payload_is_read_by_its_kind() -> None:
    payload = CancelPayload(flight_id=ident("flt"))
    body, _ = build_signed_bytes(replace(an_envelope(), payload=payload))
    header = decode(body, EnvelopeHeader)
    assert read_payload(header) == payload


def test_a_bundle_has_one_signature_for_all_of_its_envelopes() -> None:
    envelopes = [an_envelope(), replace(an_envelope(), id=ident("env", 2))]
    sent = SignedBundle(bundle=build_bundle(map(encode, envelopes)), signature="00")
    found = read_parcel(encode(sent))
    assert found == sent
    assert sent.signed_bytes == BUNDLE_SIGNED_AS + sent.bundle.encode()
    assert [one.id for one in read_headers(found)] == [one.id for one in envelopes]
    assert [read_payload(one) for one in read_headers(found)] == [one.payload for one in envelopes]


def test_an_envelope_is_a_parcel_of_one() -> None:
    body, _ = build_signed_bytes(an_envelope())
    sent = SignedEnvelope(body=body, signature="00")
    assert read_parcel(encode(sent)) == sent
    assert [one.id for one in read_headers(sent)] == [an_envelope().id]


@pytest.mark.parametrize("data", [b"", b"[]", b'{"body":""}', b'{"bundle":"[{}]","signature":""}'])
def test_what_is_neither_an_envelope_nor_a_bundle_is_refused(data: bytes) -> None:
    with pytest.raises(Refused):
        read_headers(read_parcel(data))
