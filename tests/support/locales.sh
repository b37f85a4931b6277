#!/usr/bin/env bash
# locales.sh FOLDER: makes locales in FOLDER (LOCPATH). In de_DE the decimal point is a comma and thousands are grouped
# by points. In ps_AF the decimal point takes two bytes.
set -euo pipefail
mkdir -p "$1"
for language in de_DE ps_AF; do
  localedef -i "$language" -f UTF-8 "$1/$language.UTF-8"
done
