"""A small interactive program: it shows a prompt, takes a pasted text as one piece, and answers it."""

import os
import sys
import termios
import tty

PASTE, PASTED = b"\x1b[200~", b"\x1b[201~"


def main() -> None:
    """Read, answer, until the end of input."""
    before = termios.tcgetattr(0)
    tty.setcbreak(0)
    try:
        show("\x1b[?2004hready\n")
        while True:
            show("> ")
            try:
                answer(entry())
            except KeyboardInterrupt:
                show("\n")
    finally:
        termios.tcsetattr(0, termios.TCSANOW, before)


def show(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def entry() -> str:
    """What was typed up to Enter; a line end inside of a paste belongs to it."""
    data, pasting = b"", False
    while True:
        data += os.read(0, 4096)
        pasting = data.count(PASTE) > data.count(PASTED)
        if not pasting and data.endswith((b"\r", b"\n")):
            text = data.replace(PASTE, b"").replace(PASTED, b"").decode().replace("\r", "\n").rstrip("\n")
            show(text + "\n")
            return text


def answer(text: str) -> None:
    word, _, rest = text.partition(" ")
    match word:
        case "!die":
            show(f"{rest}\n")
            sys.exit(3)
        case "!hang":
            while True:
                os.read(0, 1)
        case "!may":
            show("may I go on? [y/N] ")
            show("\nyes, it went on\n" if entry() == "y" else "\nno, it did not\n")
        case "!choose":
            show("Do you want to proceed?\n ❯ 1. Yes\n   2. Yes, always\n   3. No\n\n Esc to cancel\n")
            key = os.read(0, 8)
            show(f"\x1b[6A\x1b[Jchosen {key!r}\n")
        case "!env":
            show(f"{os.environ.get(rest)} {sys.argv[1:]}\n")
        case "!slow":
            show(f"{rest}\n")
        case _:
            show(f"{text}\n")


if __name__ == "__main__":
    main()
