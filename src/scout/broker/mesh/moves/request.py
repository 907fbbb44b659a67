"""The request to move an agent to another node."""

from msgspec.structs import replace

from scout.base.refusal import Refused
from scout.broker.mesh.moves import departure
from scout.broker.transaction.call import CallBroker, CallContext
from scout.broker.transaction.transaction import Transaction
from scout.model.flight import FlightError
from scout.model.mesh.outbox import OPEN, OutboxEntry
from scout.model.mesh_receipt import OutboxState
from scout.model.problems.mesh import MoveRefused
from scout.model.ref import Ref
from scout.protocol.agents import MoveAgent, MovedAgent


async def move_agent(call: CallContext[CallBroker], request: MoveAgent) -> MovedAgent:
    """Let an agent leave, then wait until the other node has it, or has refused it."""
    moved = await call.write_once(request, start_move)
    await _wait_for_answer(call, moved.agent_id, request.wait)
    return await call.read(lambda tx: _show_state(tx, moved))


def start_move(tx: Transaction, request: MoveAgent) -> MovedAgent:
    """Let an agent leave; the answer says what goes with it and what stays."""
    left = departure.start_move(tx, request)
    return MovedAgent(
        agent_id=left.agent_id,
        address=tx.address(left.agent_id),
        node=left.node.name,
        arrived=False,
        sessions=left.sessions,
        aliases=left.aliases,
        work_items=left.work_items,
        questions=left.questions,
        unread=left.unread,
    )


async def _wait_for_answer(call: CallContext[CallBroker], agent_id: str, seconds: float) -> None:
    end = call.services.clock.monotonic() + seconds
    with call.broker.waiters.listening(Ref.to(agent_id)) as listener:
        while _is_open(call.glance(), agent_id):
            if not await listener.wait(end - call.services.clock.monotonic()):
                return


def _is_open(tx: Transaction, agent_id: str) -> bool:
    move = departure.find_move(tx, agent_id)
    return move is not None and move.state in OPEN


def _show_state(tx: Transaction, moved: MovedAgent) -> MovedAgent:
    """Return the answer as it is now; refuse if the other node has refused the agent."""
    move = departure.find_move(tx, moved.agent_id)
    address = tx.address(moved.agent_id)
    if move is None or move.state is OutboxState.ACCEPTED:
        return replace(moved, arrived=True, address=address)
    if move.state in OPEN:
        waits = f"node {moved.node} has not answered yet: {moved.address} arrives there when it does"
        return replace(moved, address=address, notes=(waits,))
    raise Refused(_build_refusal(moved, move))


def _build_refusal(moved: MovedAgent, move: OutboxEntry) -> MoveRefused:
    problem = move.problem or FlightError(code="forbidden", message="it gave no reason")
    return MoveRefused(
        address=moved.address, node=moved.node, code_there=problem.code, reason=problem.message
    )
