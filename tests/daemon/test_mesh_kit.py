"""Without a mesh nothing of it is loaded; without its libraries it is refused with the command for them."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from scout.base.refusal import Refused
from scout.daemon.mesh import StoredMesh
from scout.model.problems.mesh import MeshNotInstalled
from scout.ports.mesh import MeshConfig
from tests.mesh.stage import now

_HEAVY = ("nats", "nkeys", "nacl", "cryptography", "scout.mesh")


@pytest.mark.rows("R8.a-2")
@pytest.mark.parametrize(
    "code",
    [
        "import scout.daemon.serve, scout.daemon.mesh",
        "import scout.daemon.mesh as m; m.StoredMesh(Path('/x'), Path('/y'), int).read()",
        "import scout.daemon.mesh as m; assert m.StoredMesh(Path('/x'), Path('/y'), int).installed",
        "from scout.cli.main import scout; scout(['--help'], standalone_mode=False)",
        "import scout; scout.Scout",
    ],
)
def test_nothing_of_the_mesh_is_loaded_before_it_is_used(code: str) -> None:
    probe = f"import sys; from pathlib import Path\n{code}\n"
    probe += f"print('LOADED', sorted(set({_HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run(
        (sys.executable, "-c", probe), capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "LOADED []"


def test_without_the_libraries_each_use_is_refused_with_the_command(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['nats'] = None\n"
        "from pathlib import Path; from scout.daemon.mesh import StoredMesh; from scout.base.refusal import Refused\n"
        f"kit = StoredMesh(Path({str(tmp_path)!r}), Path('/y'), int)\n"
        "assert kit.read() is None\n"
        "try: kit.login_key()\n"
        "except Refused as refused: print(refused)"
    )
    done = subprocess.run(
        (sys.executable, "-c", code), capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.startswith("mesh_not_installed: the mesh needs the package 'nats")
    assert f"{sys.executable} -m pip install 'scout-broker[mesh]'" in done.stdout


def test_the_configuration_is_stored_read_and_forgotten(tmp_path: Path) -> None:
    kit = StoredMesh(tmp_path / "mesh", tmp_path / "node.key", now)
    assert kit.installed
    assert kit.read() is None
    config = MeshConfig(mesh_id="msh_1", url="tls://10.0.0.1:4222", founder_key="aa", certificate="bb")
    kit.store(config)
    identity, login = kit.keys().public_key, kit.login_key()
    again = StoredMesh(tmp_path / "mesh", tmp_path / "node.key", now)
    assert again.read() == config
    assert (again.keys().public_key, again.login_key()) == (identity, login)
    assert (tmp_path / "mesh/mesh.json").stat().st_mode & 0o777 == 0o600
    again.forget()
    assert again.read() is None
    assert again.keys().public_key == identity
    assert again.login_key() != login


def test_a_configuration_that_others_can_read_is_refused(tmp_path: Path) -> None:
    kit = StoredMesh(tmp_path / "mesh", tmp_path / "node.key", now)
    kit.store(MeshConfig(mesh_id="msh_1", url="x", founder_key="aa"))
    (tmp_path / "mesh/mesh.json").chmod(0o644)
    with pytest.raises(Refused, match="cannot be used as a secret"):
        kit.read()


def test_a_forgotten_server_leaves_no_files(tmp_path: Path) -> None:
    kit = StoredMesh(tmp_path / "mesh", tmp_path / "node.key", now)
    asyncio.run(kit.found("msh_1", host="127.0.0.1", port=0))
    assert (tmp_path / "mesh/server/nats.conf").exists()
    kit.forget()
    assert not (tmp_path / "mesh/server").exists()


def test_the_refusal_names_the_missing_package() -> None:
    assert "pip" in MeshNotInstalled(package="nats", command="pip install x").message
