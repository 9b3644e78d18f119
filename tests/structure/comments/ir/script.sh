# reads rules.def and then lost.sh
echo "no comment: missing.sh"
