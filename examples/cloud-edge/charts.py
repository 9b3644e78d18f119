"""The study's figures as SVG: bars of seconds by part, and lines over theta."""

from __future__ import annotations

from pathlib import Path

PARTS = {"edge": "#0b57d0", "cloud": "#c77700", "link": "#9aa0a6", "connecting": "#d0d3d6"}
LINES = ("#0b57d0", "#b3261e", "#188038", "#c77700")


def text(x: float, y: float, words: str, **attributes: str) -> str:
    more = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in attributes.items())
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{words}</text>'


def write(path: Path, width: int, height: int, title: str, parts: list[str]) -> None:
    path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="11">'
                    f'<rect width="{width}" height="{height}" fill="#fff"/>' + text(20, 24, title, font_size="15") + "\n" + "\n".join(parts) + "\n</svg>\n")


def bars(path: Path, title: str, panels: dict[str, dict[str, tuple[float, ...]]]) -> None:
    """Panels by link; of each a bar by strategy: edge, cloud, link and connecting in seconds. What is beyond the axis is cut, with its total in words."""
    wide, row, left = 420, 17, 110
    height = 60
    parts = [text(20 + 90 * i, 44, name, fill=colour, font_weight="bold") for i, (name, colour) in enumerate(PARTS.items())]
    for panel, strategies in panels.items():
        totals = sorted(sum(values) for values in strategies.values())
        top = max(totals[-2] if len(totals) > 1 else totals[-1], 1e-9)  # the slowest may be far off the scale
        height += 24
        parts.append(text(20, height, panel, font_weight="bold"))
        for name, values in strategies.items():
            height += row
            parts.append(text(left - 6, height, name, text_anchor="end"))
            x = 0.0
            for value, colour in zip(values, PARTS.values()):
                end = min(x + value / top * wide, wide + 20)
                parts.append(f'<rect x="{left + x:.1f}" y="{height - 10}" width="{max(end - x, 0):.1f}" height="12" fill="{colour}"/>')
                x = end
            parts.append(text(left + x + 6, height, f"{sum(values):.3g} s"))
        height += 10
    write(path, left + wide + 110, height + 10, title, parts)


def lines(path: Path, title: str, series: dict[str, list[tuple[float, float]]], below: str) -> None:
    """Shares in percent over theta."""
    left, top, wide, high = 60, 70, 420, 240
    least = min(x for points in series.values() for x, _ in points)
    most = max(x for points in series.values() for x, _ in points)
    def at(x: float, y: float) -> tuple[float, float]:
        return left + (x - least) / (most - least or 1) * wide, top + high - y / 100 * high
    parts = [f'<rect x="{left}" y="{top}" width="{wide}" height="{high}" fill="none" stroke="#888"/>', text(left + wide / 2, top + high + 32, below, text_anchor="middle")]
    parts += [text(left - 6, at(least, y)[1] + 4, f"{y} %", text_anchor="end") for y in (0, 25, 50, 75, 100)]
    parts += [text(at(x, 0)[0], top + high + 15, f"{x:g}", text_anchor="middle") for x in sorted({x for points in series.values() for x, _ in points})]
    for (name, points), colour in zip(series.items(), LINES):
        path_points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*point) for point in points))
        parts.append(f'<polyline points="{path_points}" fill="none" stroke="{colour}" stroke-width="2"/>')
    parts += [text(left + 210 * (i % 2), 44 + 14 * (i // 2), name, fill=LINES[i]) for i, name in enumerate(series)]
    write(path, left + wide + 40, top + high + 50, title, parts)
