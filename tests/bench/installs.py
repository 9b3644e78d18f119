"""installs.py [--suite SUITE] PACKAGES [WAY ...]: times the ways of installing llmpart in a clean Debian (12), as root.

PACKAGES holds what `sh tools/package.sh` and `sh tools/package.sh --wheel` wrote. Each way (deb, pip, cmake, source) gets
a copy of one debootstrap and installs llmpart in it as docs/guide/install.md says. Then a chat gives its first answer,
from the story model, which it compiles for this machine; then the commands of the first tutorial run there. Prints a row
for each: seconds on the wall, and in parentheses CPU seconds of all processes.
"""

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
APT = "apt-get update -qq && apt-get install -y -qq --no-install-recommends"
PIP = "python3 -m venv /venv && /venv/bin/pip install -q --no-index --find-links=/packages llmpart"
BUILD = "cd /src && cmake --preset release -DBUILD_TESTING=OFF && cmake --build --preset release"
# Steps of each way with their names, and the folder that has the command afterwards.
WAYS = {
    "deb": ({"install": f"{APT} /packages/llmpart_*.deb"}, "/usr/bin"),
    "pip": ({"packages": f"{APT} python3-venv", "install": PIP}, "/venv/bin"),
    "cmake": ({"packages": "sh /src/tools/setup.sh", "build": BUILD, "install": "cmake --install /src/build/release"}, "/usr/local/bin"),
    "source": ({"packages": "sh /src/tools/setup.sh", "build": BUILD}, "/src/build/release/tools"),
}


# The story model knows no chat, so its template is the question alone.
CHAT = "printf 'Once upon a time\\n' | llmpart chat model.onnx -n 32 | grep -q ."
TEMPLATE = '{"chat_template": "{% for m in messages %}{{ m.content }}{% endfor %}"}'


def debootstrap(root: Path, suite: str) -> None:
    """A clean Debian, from where this machine gets its own packages."""
    lists = [path for path in Path("/etc/apt").glob("sources.list*/*") if path.is_file()] + [Path("/etc/apt/sources.list")]
    text = "\n".join(path.read_text() for path in lists if path.exists())
    mirror = re.search(r"^(?:URIs: *|deb )(http\S*debian\.org\S*)", text, re.MULTILINE)
    command = ["debootstrap", "--variant=minbase", suite, str(root), mirror[1] if mirror else "http://deb.debian.org/debian"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")


def inside(root: Path, script: str, path: str = "") -> tuple[float, float]:
    """Runs a script in the Debian; returns its seconds and CPU seconds."""
    environment = {"PATH": f"{path}:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(["chroot", root, "sh", "-euc", f"cd /root\n{script}"], env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"installs: {script}\n{(done.stdout + done.stderr)[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - begin, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def used_mb(root: Path) -> float:
    """The size of what is installed, without the sources, the packages and apt's cache."""
    command = ["du", "-smx", "--exclude=src/.git", "--exclude=packages", "--exclude=var/cache", "--exclude=var/lib/apt", "."]
    return float(subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout.split()[0])


def measure(base: Path, packages: Path, way: str) -> str:
    """Installs in a copy of the clean Debian, and returns the row."""
    root = base.with_name(way)
    subprocess.run(["cp", "-a", base, root], check=True)
    shutil.copytree(packages, root / "packages")
    if way in ("cmake", "source"):
        subprocess.run(["git", "clone", "-q", SOURCE, root / "src"], check=True)
    for name in ("model.onnx", "tokenizer.json"):
        shutil.copy(SOURCE / "examples/default-model" / name, root / "root")
    (root / "root/tokenizer_config.json").write_text(TEMPLATE)
    subprocess.run(["mount", "-t", "proc", "proc", root / "proc"], check=True)
    try:
        clean = used_mb(base)
        steps, path = WAYS[way]
        times = {name: inside(root, script) for name, script in steps.items()}
        size = used_mb(root) - clean
        times["first answer"] = inside(root, CHAT, path)
        first = sum(wall for wall, _ in times.values())
        page = "\n".join(re.findall(r"^```sh\n(.*?)^```$", (SOURCE / "docs/tutorials/own-model.md").read_text(), re.MULTILINE | re.DOTALL))
        times["tutorial"] = inside(root, page, path)
    finally:
        subprocess.run(["umount", root / "proc"], check=True)
    cells = ", ".join(f"{name} {wall:.0f} ({cpu:.0f})" for name, (wall, cpu) in times.items() if name != "tutorial")
    shutil.rmtree(root)
    return f"| {way} | {cells} | {size:.0f} MB | {first:.0f} | {times['tutorial'][0]:.0f} ({times['tutorial'][1]:.0f}) |"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("packages", type=Path)
    parser.add_argument("ways", nargs="*", choices=[*WAYS, []], default=list(WAYS))
    parser.add_argument("--suite", default="bookworm")
    args = parser.parse_args()
    if os.getuid() != 0:
        sys.exit("installs: debootstrap needs root")
    with tempfile.TemporaryDirectory() as folder:
        packages, base = Path(folder, "packages"), Path(folder, "clean")
        shutil.copytree(args.packages, packages)
        python = "3.11" if args.suite == "bookworm" else "3.13"
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", f"--python-version={python}", "--only-binary=:all:", "-d", packages, "cffi"],
                       check=True)
        debootstrap(base, args.suite)
        print("| way | steps, s (CPU s) | adds | first answer after, s | tutorial, s (CPU s) |\n| --- | --- | --- | --- | --- |", flush=True)
        for way in args.ways or WAYS:
            print(measure(base, packages, way), flush=True)


if __name__ == "__main__":
    main()
