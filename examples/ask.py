"""Ask an agent from Python and print its answer: `python examples/ask.py @upper 'make this loud'`."""

import sys

from scout import BlockingScout

address, body = sys.argv[1:]
with BlockingScout() as scout:
    receipt = scout.ask(address, body)
    flight = scout.wait(receipt.flight_id, timeout=60)
    print(flight.output if flight.state == "completed" else f"{flight.state}: {flight.reason}")
