#!/usr/bin/env python3
"""Writes the chat templates of published models into a folder, for conversations.py.

    published_templates.py DIR

They come from two packages of PyPI, which pip downloads: the source of llama-cpp-python has those with which llama.cpp is
tested, and unsloth has those with which it trains (those of each that have the same text, once). Not all of them have a
licence under which they could stand in this tree.
"""
import ast
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile

PACKAGES = ["llama-cpp-python==0.3.36", "unsloth==2026.10.9"]


def download(package, folder):
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary=llama-cpp-python",
                    "--dest", folder, package], check=True)


def of_llama_cpp(path):
    with tarfile.open(path) as archive:
        for member in archive:
            if "/models/templates/" in member.name and member.name.endswith(".jinja"):
                yield pathlib.Path(member.name).stem, archive.extractfile(member).read().decode("utf-8")


def of_unsloth(path):
    """The templates that chat_templates.py assigns to variables; importing it would need a GPU."""
    with zipfile.ZipFile(path) as archive:
        tree = ast.parse(archive.read("unsloth/chat_templates.py"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            if "messages" in node.value.value and "{%" in node.value.value:
                yield f"unsloth-{node.targets[0].id.removesuffix('_template')}", node.value.value


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out, known = pathlib.Path(sys.argv[1]), set()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for package in PACKAGES:
            download(package, folder)
        (source,) = pathlib.Path(folder).glob("*.tar.gz")
        (wheel,) = pathlib.Path(folder).glob("*.whl")
        for name, text in [*of_llama_cpp(source), *of_unsloth(wheel)]:
            if text not in known:
                (out / f"{name}.jinja").write_text(text, encoding="utf-8")
            known.add(text)
    print(f"{len(known)} templates in {out}")


if __name__ == "__main__":
    main()
