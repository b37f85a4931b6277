#!/usr/bin/env bash
# Makes locales in FOLDER (LOCPATH): locales.sh FOLDER. In de_DE the decimal point is a comma and thousands have points; in ps_AF the
# decimal point takes two bytes.
set -euo pipefail
mkdir -p "$1"
for language in de_DE ps_AF; do
  localedef -i "$language" -f UTF-8 "$1/$language.UTF-8"
done
