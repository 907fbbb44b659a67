"""An agent of your own: it takes asks from its inbox and replies. SCOUT_TOKEN is its token.

`scout agent register counter --json` prints the token; `python examples/worker.py 3` answers three asks.
"""

import sys

from scout import BlockingScout
from scout.protocol.endpoints import RegisterEndpoint

with BlockingScout() as scout:
    me = scout.whoami()
    scout.call(RegisterEndpoint(agent_id=me.agent_id, harness="worker", transport="pull", state="idle"))
    print(f"{me.address} waits for asks", flush=True)
    for _ in range(int(sys.argv[1])):
        while not (claimed := scout.claim(limit=1, wait=30).items):
            pass
        (item,) = claimed
        words = len(item.message.body.split()) if item.message else 0
        scout.reply(f"{words} words", in_reply_to=item.message.id if item.message else None)
        print(f"answered {item.sender}", flush=True)
