# A release is made of what is committed, dated and not yet tagged; the rest of it is what package.sh makes.
. "$LP_SOURCE/tests/e2e/lib.sh"
git -C "$LP_SOURCE" rev-parse -q --verify HEAD >/dev/null 2>&1 || skip 'the source is no clone'
git clone -q --shared "$LP_SOURCE" "$work/clone" && cd "$work/clone" || finish
cp "$LP_SOURCE/tools/release.sh" tools/release.sh
git config user.email a@b && git config user.name a && git commit -qam x
version=$(sed -n 's/^project(llmpart VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
refused() { ! sh tools/release.sh out >"$work/out" 2>&1 && grep -Fq "$1" "$work/out" || fail "not refused by '$1': $(cat "$work/out")"; }
printf '\n## %s, 2026-12-01\n' "$version" >>CHANGELOG.md
refused 'the tree has changes that are not committed'
git commit -qam dated && git tag "v$version"
refused "the tag v$version exists"
sed -i "s/^## $version, 2026-12-01$/## $version, soon/" CHANGELOG.md && git commit -qam undated
refused "CHANGELOG.md has no section '## $version, YEAR-MONTH-DAY'"
finish
