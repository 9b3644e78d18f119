. "$LP_SOURCE/tests/e2e/lib.sh"
skip 'later'
