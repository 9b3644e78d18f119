"""The figures of "CE-CoLLM: Efficient and Adaptive LLMs Through Cloud-Edge Collaboration", and what follows from them by formula.

Usage: paper.py   (prints the part of README.md that needs no run)
"""

from __future__ import annotations

from dataclasses import dataclass

LINKS = [("wifi", 5, 50, 100), ("lte", 50, 10, 40), ("far", 200, 5, 20), ("narrow", 30, 1, 4)]  # of this study: ms, Mbit/s up and down
WIDTH = 4096  # LLaMA-7B
TOKENS = 100  # generated for each prompt; the paper's seconds are those of 100 prompts


@dataclass(frozen=True)
class Published:
    prompt: float  # mean tokens of a prompt
    cloud_only: float  # seconds
    naive: float
    standalone: float
    collaborative: tuple[float, float, float, float]  # total, cloud, edge, communication; theta 0.8
    request_rate: float
    naive_kib: float
    collaborative_kib: float


DATA = {
    "Alpaca": Published(20.58, 370.2, 3371.8, 201.6, (319.1, 112.7, 192.2, 14.1), 0.4958, 112128, 956.62),
    "XSum": Published(371.45, 392.5, 19108.7, 221.4, (376.0, 60.7, 258.4, 57.0), 0.2773, 673520, 3763.61),
}


def naive_bytes(width: int, prompt: float, tokens: int) -> float:
    """All of the text so far goes up again for each token, in f32."""
    return 4 * width * (tokens * prompt + tokens * (tokens - 1) / 2)


def incremental_bytes(width: int, prompt: float, tokens: int, element: int = 4) -> float:
    """Each position goes up once; the last token never does. `element` 2: f16, the paper's collaborative modes."""
    return element * width * (prompt + tokens - 1)


def break_even(full: float, edge: float, per_request: float) -> float:
    """The share of tokens that may ask the cloud before cloud-only is as quick; times of one token each."""
    return (full - edge) / per_request


def over_link(p: Published, rtt_ms: float, up_mbit: float) -> dict[str, float]:
    """Seconds of a prompt with the paper's computing over another link, by formula. What goes up before a question is waited for: the prompt's
    rows once, then a row."""
    full, (_, cloud, edge, _) = p.cloud_only / 100, (part / 100 for part in p.collaborative)

    def moved(rows: float, element: int) -> float:
        return 8 * rows * element * WIDTH / (up_mbit * 1e6)

    def waits(requests: float, element: int) -> float:
        return requests * (rtt_ms / 1000 + moved(1, element)) + moved(p.prompt, element)

    return {"cloud-only": full + rtt_ms / 1000, "incremental": full + waits(TOKENS, 4), "theta 0.8": edge + cloud + waits(p.request_rate * TOKENS, 2),
            "standalone": p.standalone / 100}


def links_table() -> list[str]:
    lines = ["Its computing over the links of this study, by formula, in seconds of a prompt:", "", "| | " + " | ".join(f"{name} ({rtt:g} ms, {up:g} Mbit/s up)" for name, rtt, up, _ in LINKS) + " |",
             "| --- " * (len(LINKS) + 1) + "|"]
    for name, p in DATA.items():
        found = [over_link(p, rtt, up) for _, rtt, up, _ in LINKS]
        lines += [f"| {name}, {strategy} | " + " | ".join(f"{at[strategy]:.2f}" for at in found) + " |" for strategy in found[0]]
    return lines


def tables() -> list[str]:
    lines = ["| | L | naive, KiB: paper / formula | f16 rows, KiB: paper / formula | incremental f32, KiB |", "| --- " * 5 + "|"]
    for name, p in DATA.items():
        lines.append(f"| {name} | {p.prompt} | {p.naive_kib:,.0f} / {naive_bytes(WIDTH, p.prompt, TOKENS) / 1024:,.0f} | {p.collaborative_kib:,.2f} / "
                     f"{incremental_bytes(WIDTH, p.prompt, TOKENS, 2) / 1024:,.2f} | {incremental_bytes(WIDTH, p.prompt, TOKENS) / 1024:,.1f} |")
    lines += ["", "| published, s | cloud-only | naive | standalone | collaborative, theta 0.8 | cloud / edge / comm | asks the cloud |", "| --- " * 7 + "|"]
    for name, p in DATA.items():
        total, cloud, edge, comm = p.collaborative
        lines.append(f"| {name} | {p.cloud_only} | {p.naive} | {p.standalone} | {total} | {cloud} / {edge} / {comm} | {100 * p.request_rate:.2f} % |")
    lines += ["", "| ours, from the published seconds | break-even rate | cloud work offloaded | link, ms a request | as quick as cloud-only at |", "| --- " * 5 + "|"]
    for name, p in DATA.items():
        total, cloud, edge, comm = p.collaborative
        requests = p.request_rate * 100 * TOKENS
        even = break_even(p.cloud_only / (100 * TOKENS), edge / (100 * TOKENS), (cloud + comm) / requests)
        lines.append(f"| {name} | {100 * even:.1f} % | {100 * (1 - cloud / p.cloud_only):.2f} % | {1000 * comm / requests:.1f} | "
                     f"{1000 * (p.cloud_only - edge - cloud) / requests:.1f} ms |")
    return lines


if __name__ == "__main__":
    print("\n".join(["<!-- table: formulas -->", *tables(), "", *links_table(), "<!-- end -->"]))
