"""Unit files that let the system start the daemon."""

import shlex
from collections.abc import Mapping
from xml.sax.saxutils import escape

from scout.base.refusal import BadRequest, Refused

KINDS = ("systemd", "launchd")

_SYSTEMD = """\
[Unit]
Description=Scout, a broker for coding agents
Documentation=man:scout(1)
After=default.target

[Service]
ExecStart={command}
{environment}Restart=on-failure
RestartSec=2
KillMode=process

[Install]
WantedBy=default.target
"""

_LAUNCHD_ENVIRONMENT = """\
  <key>EnvironmentVariables</key><dict>{pairs}</dict>
"""

_LAUNCHD = """\
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key><string>scout</string>
  <key>ProgramArguments</key>
  <array>
{arguments}
  </array>
{environment}  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
  <key>AbandonProcessGroup</key><true/>
</dict>
</plist>
"""


def build_unit(kind: str, executable: str, given: Mapping[str, str]) -> str:
    """Return the unit that runs `executable -m scout.daemon --foreground` with the given environment.

    Stopping the unit ends only the daemon. Running sessions keep running, as with `scout down`.
    """
    words = [executable, "-m", "scout.daemon", "--foreground"]
    if kind == "systemd":
        command = shlex.join(words).replace("%", "%%")
        lines = (f'Environment="{name}={value}"\n' for name, value in given.items())
        environment = "".join(lines).replace("%", "%%")
        return _SYSTEMD.format(command=command, environment=environment)
    if kind == "launchd":
        arguments = "\n".join(f"    <string>{escape(word)}</string>" for word in words)
        pairs = (
            f"<key>{escape(name)}</key><string>{escape(value)}</string>" for name, value in given.items()
        )
        environment = _LAUNCHD_ENVIRONMENT.format(pairs="".join(pairs)) if given else ""
        return _LAUNCHD.format(arguments=arguments, environment=environment)
    raise Refused(BadRequest(problem=f"no unit of kind '{kind[:30]}'; there are {' and '.join(KINDS)}"))
