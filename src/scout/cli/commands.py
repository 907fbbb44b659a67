"""The commands there are, each in a module of its own name."""

__all__ = ["COMMANDS"]

COMMANDS = {
    "parse": "Read addresses and mentions, offline.",
    "resolve": "Say what an address means in a fleet, and why.",
    "explain": "Explain a diagnostic code.",
    "contract": "Print the prompt contract every harness gets.",
}
