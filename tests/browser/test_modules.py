"""The page's own modules: types are checked, though nothing is built."""

import subprocess
from pathlib import Path

import scout.web
from tests.browser.browsing import TYPESCRIPT
from tests.live.programs import require_program

_ASSETS = Path(scout.web.__file__).parent / "assets"


def test_the_types_of_every_module() -> None:
    compiler = require_program(TYPESCRIPT)
    flags = "--noEmit --allowJs --checkJs --strict --noUncheckedIndexedAccess --target es2022 --module es2022"
    libraries = "--lib es2022,dom,dom.iterable,dom.asynciterable"
    done = subprocess.run(
        ["node", str(compiler), *flags.split(), *libraries.split(), *map(str, sorted(_ASSETS.glob("*.js")))],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_every_module_is_checked() -> None:
    for path in _ASSETS.glob("*.js"):
        assert path.read_text().startswith("// @ts-check\n"), path.name


def test_text_goes_in_as_text() -> None:
    for path in _ASSETS.glob("*.js"):
        text = path.read_text()
        for sink in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "DOMParser"):
            assert sink not in text, (path.name, sink)
