# The path losses of `llmpart radio pathloss --csv` on a grid of 1,000 points agree within 0.01 dB with the formulas of
# TR 38.901, Table 7.4.1-1, written here a second time.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk 'BEGIN {
  srand(38901); split("UMa UMi RMa InH-office", scenario, " ")
  print "scenario,los,d2d,hbs,hut,fc"
  for (i = 0; i < 1000; i++) {
    s = scenario[i % 4 + 1]; los = int(i / 4) % 2 ? "los" : "nlos"
    if (s == "InH-office") printf "%s,%s,%.3f,3,1,%.3f\n", s, los, 1 + 140 * rand(), 0.5 + 60 * rand()
    else {
      hbs = s == "UMa" ? 25 : s == "UMi" ? 10 : 35
      hut = s == "RMa" ? 1 + 9 * rand() : 1.5 + 11 * rand()
      printf "%s,%s,%.3f,%g,%.3f,%.3f\n", s, los, 10 * exp(log(500) * rand()), hbs, hut, 0.5 + (s == "RMa" ? 6 : 30) * rand()
    }
  }
}' >"$work/grid.csv"
"$LLMPART" radio pathloss --csv="$work/grid.csv" -o "$work/found.csv"
awk -F, '
function lg(x) { return log(x) / log(10) }
function min(a, b) { return a < b ? a : b }
function max(a, b) { return a > b ? a : b }
# Of the table, with the distance to the antenna d, that along the ground g, heights b and u, frequency f.
function uma(d, g, b, u, f,   p) {
  p = 4 * (b - 1) * (u - 1) * f * 1e9 / 3e8
  return g <= p ? 28 + 22 * lg(d) + 20 * lg(f) : 28 + 40 * lg(d) + 20 * lg(f) - 9 * lg(p ^ 2 + (b - u) ^ 2)
}
function umi(d, g, b, u, f,   p) {
  p = 4 * (b - 1) * (u - 1) * f * 1e9 / 3e8
  return g <= p ? 32.4 + 21 * lg(d) + 20 * lg(f) : 32.4 + 40 * lg(d) + 20 * lg(f) - 9.5 * lg(p ^ 2 + (b - u) ^ 2)
}
function rma1(d, f) {
  return 20 * lg(40 * 3.14159265358979 * d * f / 3) + min(0.03 * 5 ^ 1.72, 10) * lg(d) - min(0.044 * 5 ^ 1.72, 14.77) + 0.002 * lg(5) * d
}
function rma(d, g, b, u, f,   p) {
  p = 2 * 3.14159265358979 * b * u * f * 1e9 / 3e8
  return d <= p ? rma1(d, f) : rma1(p, f) + 40 * lg(d / p)
}
function rma_nlos(d, b, u, f) {
  return 161.04 - 7.1 * lg(20) + 7.5 * lg(5) - (24.37 - 3.7 * (5 / b) ^ 2) * lg(b) + (43.42 - 3.1 * lg(b)) * (lg(d) - 3) + 20 * lg(f) - (3.2 * lg(11.75 * u) ^ 2 - 4.97)
}
NR == 1 { if ($0 != "scenario,los,d2d,hbs,hut,fc,pathloss_db") { print "header: " $0; bad = 1 } next }
{
  d = sqrt($3 ^ 2 + ($4 - $5) ^ 2); los = $2 == "los"; f = $6; n++
  if ($1 == "UMa") { w = uma(d, $3, $4, $5, f); if (!los) w = max(w, 13.54 + 39.08 * lg(d) + 20 * lg(f) - 0.6 * ($5 - 1.5)) }
  else if ($1 == "UMi") { w = umi(d, $3, $4, $5, f); if (!los) w = max(w, 35.3 * lg(d) + 22.4 + 21.3 * lg(f) - 0.3 * ($5 - 1.5)) }
  else if ($1 == "RMa") { w = rma(d, $3, $4, $5, f); if (!los) w = max(w, rma_nlos(d, $4, $5, f)) }
  else { w = 32.4 + 17.3 * lg(d) + 20 * lg(f); if (!los) w = max(w, 38.3 * lg(d) + 17.30 + 24.9 * lg(f)) }
  if ($7 - w > 0.01 || w - $7 > 0.01 || $7 !~ /^[0-9]/) { print $0 ": wanted " w; bad = 1 }
}
END { if (n != 1000) { print n " rows"; bad = 1 } exit bad }' "$work/found.csv"
